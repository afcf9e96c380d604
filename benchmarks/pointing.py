"""A pointer network on sets of several sizes: exact answers, area or length, validity, speed.

python -m benchmarks.pointing runs/hull --sizes 5 10 50 100 200 500
"""

from __future__ import annotations

import argparse
import time

from sightline.metrics import info
from sightline.tasks import load_for, spec_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 50])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--beam", type=int)
    given = parser.parse_args()
    for size in given.sizes:
        test = [f"test.size={size}", f"test.examples={given.examples}"]
        model = load_for(given.model, "point", test)
        began = time.perf_counter()
        scores = spec_of(model.task).evaluate(model, None, "test", given.beam).scores
        seconds = time.perf_counter() - began
        shown = []
        for key, value in scores["corpus"].items():
            about, (low, high) = info(key), scores["intervals"][key]
            interval = f"{about.scale * low:.1f} to {about.scale * high:.1f}"
            shown.append(f"{about.label} {about.show(value)} ({interval})")
        print(f"{size:4} points: {'; '.join(shown)}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
