"""Every benchmark, one after the other."""

import runpy

BENCHMARKS = [
    *("startup", "lstm", "training_step", "sampled_softmax", "runtime", "translation_speed"),
    *("attention_places", "metrics", "human_judgements"),
]

for name in BENCHMARKS:
    print(f"\n── benchmarks.{name} " + "─" * 60, flush=True)
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
