"""Sounds that tests make: tones for phones, so that a small recogniser can learn them."""

import json

import numpy as np
import soundfile

RATE = 16_000
TONES = {"A": 300.0, "B": 700.0, "C": 1300.0, "D": 2400.0, "E": 4000.0}
QUIET, LOUD = 1e-4, 0.2


def spoken(phones, rng, least=0.08, most=0.16):
    """Tones one after the other between silences: samples, and when each was said."""
    parts = [rng.normal(size=RATE // 5) * QUIET]
    spans, at = [], 0.2
    for phone in phones:
        size = int(RATE * rng.uniform(least, most))
        time = np.arange(size) / RATE
        shape = np.hanning(size) ** 0.3
        parts.append(LOUD * shape * np.sin(2 * np.pi * TONES[phone] * time))
        spans.append((at, at + size / RATE))
        at += size / RATE
    parts.append(rng.normal(size=RATE // 5) * QUIET)
    samples = np.concatenate(parts) + rng.normal(size=sum(map(len, parts))) * QUIET
    return samples.astype(np.float32), spans


def corpus(folder, count=600, longest=8):
    """A manifest of such utterances, and their spans by id."""
    rng = np.random.default_rng(0)
    (folder / "sounds").mkdir(parents=True)
    rows = []
    for number in range(count):
        phones = list(rng.choice(list(TONES), size=rng.integers(2, longest)))
        samples, spans = spoken(phones, rng)
        path = folder / "sounds" / f"{number}.wav"
        soundfile.write(path, samples, RATE)
        split = {0: "dev", 1: "test"}.get(number % 30, "train")
        row = {"id": str(number), "audio": f"sounds/{number}.wav", "split": split}
        rows.append(row | {"targets": [" ".join(phones)], "meta": {"spans": spans}})
    path = folder / "tones.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
