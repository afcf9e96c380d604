"""Every benchmark that runs by itself, one after the other.

Left out: `load`, which keeps a service busy for a minute and needs the cores to itself, and those
that compare trained models, which have to be named.
"""

import runpy

BENCHMARKS = [
    *("startup", "lstm", "training_step", "epoch", "sampled_softmax", "runtime", "growth"),
    *("translation_speed", "attention_places", "metrics", "human_judgements"),
]

for name in BENCHMARKS:
    print(f"\n── benchmarks.{name} " + "─" * 60, flush=True)
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
