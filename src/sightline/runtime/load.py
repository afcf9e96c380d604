"""Exported models of every task, run by onnxruntime: what `sightline.load` gives of an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline import search
from sightline.data.vocabulary import UNKNOWN, VOCAB, Vocabulary
from sightline.errors import CheckpointError
from sightline.runtime.batches import similar
from sightline.runtime.model_folder import EXPORT, Export
from sightline.runtime.onnx import OnnxPictureEncoder, OnnxStepper
from sightline.search.steppers import Stepper
from sightline.tasks.captioner import Captioner
from sightline.tasks.text_writer import (
    EVALUATION_LENGTH,
    EVALUATION_STREAMS,
    LanguageModel,
    Tokens,
)


def load_exported(export: Export, recipe: Any) -> Any:
    if export.about.get("task") != recipe.task:
        raise CheckpointError(
            f"{export.folder / EXPORT} and config.yaml name different tasks; export the model anew"
        )
    vocab = Vocabulary.load(export.folder / VOCAB)
    loaders = {"caption": _captioner, "translate": _translator, "language_model": _language_model}
    model = loaders[recipe.task](export, recipe, vocab)
    stepper = model.stepper() if recipe.task == "language_model" else model.stepper
    if stepper.vocab_size != len(vocab):
        raise CheckpointError(
            f"{export.folder / VOCAB} has {len(vocab)} tokens, the graphs {stepper.vocab_size}; "
            "export the model anew"
        )
    return model


def _captioner(export: Export, recipe: Any, vocab: Vocabulary) -> Captioner:
    stepper = OnnxStepper(export, banned=[UNKNOWN])
    return Captioner(recipe, vocab, stepper, OnnxPictureEncoder(export))


def _translator(export: Export, recipe: Any, vocab: Vocabulary) -> Any:
    from sightline.data.sentences import Sentences
    from sightline.tasks.alignments import load_lexicon
    from sightline.tasks.translator import SOURCE_VOCAB, Translator, never_written

    source, target = Sentences(Vocabulary.load(export.folder / SOURCE_VOCAB)), Sentences(vocab)
    stepper = OnnxStepper(export, banned=never_written(recipe, target))
    return Translator(recipe, source, target, stepper, load_lexicon(export.folder))


def _language_model(export: Export, recipe: Any, vocab: Vocabulary) -> LanguageModel:
    return LanguageModel(recipe, vocab, OnnxNetwork(OnnxStepper(export)))


@dataclass(frozen=True)
class OnnxNetwork:
    """An exported language model."""

    model: OnnxStepper

    def stepper(self, begin: int, end: int | None, banned: Sequence[int]) -> Stepper:
        return self.model.writing(begin, end, banned)

    def stream_nats(self, tokens: Tokens, begin: int) -> tuple[float, int]:
        """In parts side by side, the first after `begin`, the others after what is before them."""
        parts = max(1, min(EVALUATION_STREAMS, len(tokens) // (2 * EVALUATION_LENGTH)))
        share = -(-len(tokens) // parts)
        nats = self._nats(np.concatenate([[begin], tokens[:share]])[None], 1)
        later = list(range(share, len(tokens), share))
        if later:
            read = np.full((len(later), EVALUATION_LENGTH + 1 + share), -1)
            for row, at in enumerate(later):
                known = tokens[at - EVALUATION_LENGTH - 1 : at + share]
                read[row, : len(known)] = known
            nats += self._nats(read, EVALUATION_LENGTH + 1)
        return nats, len(tokens)

    def _nats(self, tokens: Tokens, scored: int) -> float:
        """Of the columns from `scored` on of (N, T) tokens; −1 is none."""
        stepper, rows = self.model, np.arange(len(tokens))
        state, nats = stepper.start(len(tokens)), 0.0
        for t in range(1, tokens.shape[1]):
            result = stepper.step(state, np.maximum(tokens[:, t - 1], 0))
            state = result.state
            if t >= scored:
                known = tokens[:, t] >= 0
                nats -= float(result.log_probs[rows, tokens[:, t]][known].sum(dtype=np.float64))
        return nats

    def line_nats(self, lines: list[list[int]]) -> tuple[float, int]:
        nats, count = 0.0, 0
        stepper = self.model
        for _, rows in similar([len(line) for line in lines]):
            written = [lines[row][1:] for row in rows]  # after the begin token
            for found in search.rescore(stepper, len(rows), written):
                nats, count = nats - found.log_prob, count + len(found.tokens)
        return nats, count
