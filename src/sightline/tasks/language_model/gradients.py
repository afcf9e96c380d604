"""How a gradient fades or explodes over time: of trained language models, or of new cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.config import AttentionConfig, CellKind, DecoderConfig
from sightline.data.vocabulary import Vocabulary
from sightline.errors import DataError, UserError
from sightline.tasks.language_model.parts import TextCodec

HIDDEN = 100  # units of new cells, as many as min-char-rnn has
STARTS = 4  # places of the text at which a gradient begins; the mean of logarithms is shown
NEW: tuple[tuple[CellKind, float], ...] = (
    ("rnn", 0.5), ("rnn", 1.0), ("rnn", 2.0), ("gru", 1.0), ("lstm", 1.0),
)  # fmt: skip
NAMES = {"rnn": "vanilla", "gru": "GRU", "lstm": "LSTM"}


@dataclass(frozen=True)
class Reach:
    """The largest singular value of ∂h_t/∂s_0 after each step."""

    name: str
    sigma: float  # the largest singular value of the recurrent matrix, or of its gates'
    values: NDArray[np.float64]  # (T,)

    def after(self, steps: int) -> float:
        return float(self.values[steps - 1])


def of_new_cells(text: str, steps: int, seed: int = 0) -> list[Reach]:
    """Of cells as they begin, U orthogonal; the vanilla ones' times a few factors."""
    import torch

    from sightline.nn.decoder import Decoder

    vocab = Vocabulary.build("char", [text])
    tokens = np.array(vocab.encode(text))
    found = []
    for cell, sigma in NEW:
        torch.manual_seed(seed)
        config = DecoderConfig(
            cell=cell,
            embedding=HIDDEN,
            hidden=HIDDEN,
            attention=AttentionConfig(kind="none"),
            context=(),
            output="plain",
        )
        decoder = Decoder(config, len(vocab))
        decoder.recurrent.weights(0)[1].data *= sigma
        found.append(_reach(NAMES[cell], decoder, tokens, steps))
    return found


def of_runs(names: Sequence[str], text: str, steps: int) -> list[Reach]:
    """Of trained models, reading the text."""
    from sightline.nn.stepper import TorchStepper
    from sightline.tasks import load_for

    found = []
    for name in names:
        model = load_for(name, "language_model", device="cpu")
        if not isinstance(model.stepper, TorchStepper):
            raise UserError(
                f"{name} is an export, which has no gradients; give the folder of a run"
            )
        assert isinstance(model.codec, TextCodec)
        decoder = model.stepper.decoder
        shown = f"{Path(name).name} ({NAMES[decoder.config.cell]})"
        found.append(_reach(shown, decoder, model.codec.stream(text), steps))
    return found


def _reach(name: str, decoder: object, tokens: NDArray[np.int64], steps: int) -> Reach:
    import torch

    from sightline.nn.decoder import Decoder
    from sightline.nn.gradient_flow import largest_singular_value, reach

    assert isinstance(decoder, Decoder)
    if len(tokens) < steps:
        raise DataError(f"the text has {len(tokens)} tokens; --steps {steps} needs as many")
    decoder = decoder.double().eval()
    logs = []
    for start in np.linspace(0, len(tokens) - steps, STARTS).astype(int):
        inputs = decoder.embed(torch.from_numpy(tokens[start : start + steps]))
        logs.append(reach(decoder.recurrent, inputs).clamp_min(1e-300).log().numpy())
    sigma = largest_singular_value(decoder.recurrent)
    return Reach(name, sigma, np.exp(np.mean(logs, 0)))


def draw(found: Sequence[Reach], path: Path) -> None:
    """A curve for each, by powers of ten."""
    from sightline.figures.chart import COLOURS, Curve, chart
    from sightline.figures.files import suffix_of
    from sightline.figures.sheet import FAINT, SUFFIXES

    suffix_of(path, SUFFIXES)
    steps = len(found[0].values)
    curves = [Curve([(0.0, 0.0), (float(steps), 0.0)], colour=FAINT, thick=False)]
    for number, one in enumerate(found):
        powers = np.log10(one.values)
        points = [(0.0, 0.0), *((t + 1.0, float(power)) for t, power in enumerate(powers))]
        name = f"{one.name}, σ(U) = {one.sigma:.2f}"
        curves.append(Curve(points, name, COLOURS[number % len(COLOURS)]))
    label = "by how much a gradient grows on its way back, at most: powers of ten"
    chart(curves, x_label="steps back in time", y_label=label).save(path)
