"""Half an hour of sound read in pieces, with its memory; a training step of a speech recogniser.

python -m benchmarks.sound

Times are of the processor: on a shared machine those of the clock say little.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from benchmarks import machine
from sightline.config import AttentionConfig, DecoderConfig, LossConfig, SoundEncoderConfig
from sightline.data.vocabulary import BEGIN, END, SPECIALS, Vocabulary
from sightline.media.audio import FEATURES, RATE, Floats, features, filter_banks
from sightline.media.voice import segments
from sightline.nn.device import products_in
from sightline.nn.model import Batch, pad
from sightline.tasks.transcribe.data import build_model
from sightline.tasks.transcribe.recipe import TranscribeRecipe
from sightline.types import Inputs, Stream

SECONDS, SAID, SILENT = 1800, 2.5, 0.8
ROWS, FRAMES, PHONES, KINDS = 11, 534, 32, 39


def sound() -> Iterator[Floats]:
    """Noise that swells four times a second, as syllables do, between silences."""
    rng = np.random.default_rng(0)
    time_ = np.arange(int(SAID * RATE)) / RATE
    for _ in range(int(SECONDS / (SAID + SILENT))):
        said = 0.1 * np.sin(np.pi * 4 * time_) ** 2 * rng.normal(size=len(time_))
        yield np.concatenate([said, np.zeros(int(SILENT * RATE))]).astype(np.float32)


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def read() -> None:
    began, held = time.process_time(), {}
    for number, segment in enumerate(segments(sound()), start=1):
        features(filter_banks(segment.samples))
        if number in (20, 100, 500):
            held[number] = megabytes()
    seconds = time.process_time() - began
    share = seconds / SECONDS
    print(f"read {SECONDS} s of sound in {number} pieces: {seconds:.1f} s, {share:.4f} of it")
    print("at most", ", ".join(f"{mb:.0f} MB after {n} pieces" for n, mb in held.items()))


def step(cell: str, precision: str) -> None:
    vocab = Vocabulary("word", (*SPECIALS, *map(str, range(KINDS))))
    attention = AttentionConfig(kind="location", size=64)
    recipe = TranscribeRecipe(
        manifest="",
        encoder=SoundEncoderConfig(cell=cell, hidden=160, together=(4, 1, 1)),  # type: ignore[arg-type]
        model=DecoderConfig(cell="gru", embedding=64, hidden=192, gate=False, attention=attention),
        loss=replace(LossConfig(), ctc=0.5),
    )
    torch.manual_seed(0)
    model = build_model(recipe, vocab).train()
    frames = Stream(torch.randn(ROWS, FRAMES, FEATURES), torch.ones(ROWS, FRAMES, dtype=torch.bool))
    rows = torch.randint(len(SPECIALS), len(vocab), (ROWS, PHONES)).tolist()
    batch = Batch(pad([[BEGIN, *row, END] for row in rows]), Inputs(ROWS, {"sound": frames}))
    best = float("inf")
    with products_in(precision):  # type: ignore[arg-type]
        for _ in range(4):
            began = time.process_time()
            model.loss(batch)[0].total.backward()
            best = min(best, time.process_time() - began)
    print(f"a step with {cell} in {precision}: {best:.2f} s")


def main() -> None:
    torch.set_num_threads(1)
    print(machine.describe())
    read()
    for cell, precision in (("gru", "float32"), ("lstm", "float32"), ("lstm", "bfloat16")):
        step(cell, precision)


if __name__ == "__main__":
    main()
