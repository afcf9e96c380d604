"""How long `import sightline` and the command line's help take, against bare Python.

python -m benchmarks.startup
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks import machine

COMMANDS = {
    "python": ["-c", "pass"],
    "import sightline": ["-c", "import sightline"],
    "import sightline.metrics": ["-c", "import sightline.metrics"],
    "sightline --help": ["-m", "sightline.cli", "--help"],
}


def main() -> None:
    print(machine.describe())
    for name, arguments in COMMANDS.items():
        print(f"{name:<28} {best(arguments):.3f} s")


def best(arguments: list[str], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
