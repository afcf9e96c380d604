"""The figure of benchmarks/glimpses.py: where it looked in a large picture, and what it saw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from benchmarks.glimpses import TEST, described, load
from benchmarks.large_pictures import draw
from sightline.figures.sheet import FAINT, Picture, Sheet, Text
from sightline.nn.encoders.glimpses import PIXELS, cut
from sightline.types import Inputs, Stream

SIDE, SHOWN, CROP, MARGIN, GAP = 4096, 640, 150, 30, 12


def draw_looks(folder: Path, out: Path) -> None:
    """The picture with a box for each glimpse; next to it the glimpses, with the words that
    looked there most."""
    task, model = load(folder, "glimpses")
    picture, text = draw(np.random.default_rng([TEST, SIDE]), SIDE)
    pixels = torch.from_numpy(picture)[None]
    with torch.inference_mode():
        centres, _ = model.encoder.choose(pixels)
        crops = cut(pixels, centres, model.encoder.config.side)[0]
    hypothesis = described(model, Inputs(1, {PIXELS: Stream(pixels)}))[0]
    words = [task.vocab.tokens[token] for token in hypothesis.tokens]
    small = Image.fromarray(picture).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(small)
    reach = SHOWN / SIDE * model.encoder.config.side / 2
    pictures, texts = [], []
    for number, (row, column) in enumerate((centres[0] * SHOWN / SIDE).tolist()):
        pen.rectangle((column - reach, row - reach, column + reach, row + reach), outline="white")
        pen.text((column + reach + 3, row - reach), str(number + 1), "white")
        crop = Image.fromarray(crops[number].numpy()).resize((CROP, CROP))
        x = MARGIN + SHOWN + 2 * GAP + (number % 2) * (CROP + GAP)
        y = MARGIN + (number // 2) * (CROP + 62)
        pictures.append(Picture(x, y, np.asarray(crop)))
        looked = [
            f"{word}({weights[number]:.2f})"
            for word, weights in zip(words, hypothesis.attention, strict=True)
            if weights.argmax() == number and not word.startswith("<")
        ]
        texts.append(Text(x, y + CROP + 18, f"{number + 1}", 14, FAINT))
        texts.append(Text(x + 16, y + CROP + 18, ", ".join(looked) or "–", 14))
    pictures.insert(0, Picture(MARGIN, MARGIN, np.asarray(small)))
    said = f"read: {task.vocab.decode(hypothesis.tokens)}; there is: {text}"
    texts.append(Text(MARGIN, MARGIN + SHOWN + 28, said, 18))
    width = 2 * MARGIN + SHOWN + 3 * GAP + 2 * CROP
    height = 2 * MARGIN + SHOWN + 20
    sheet = Sheet(width, height, said, pictures=tuple(pictures), texts=tuple(texts))
    sheet.save(out)
    print(f"wrote {out}")
