"""A language model without PyTorch: prompts, its codec, and the evaluation of a text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.config import SearchConfig
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import BEGIN, END, SPECIALS, UNKNOWN, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.media.text import read_text
from sightline.runtime.batches import similar
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Describer
from sightline.search.steppers import Stepper
from sightline.tasks.evaluation import Evaluation
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.types import ContextSet, Inputs, Stream

Tokens = NDArray[np.int64]

EVALUATION_STREAMS = 32  # parts in which a held-out text is read in parallel
EVALUATION_LENGTH = 256  # tokens of context read before each part
LINES = 64  # scored together


class TextCodec(Codec):
    """Text ↔ tokens in the form that a recipe trains on."""

    def __init__(self, recipe: LanguageModelRecipe, vocab: Vocabulary) -> None:
        super().__init__(vocab, SearchConfig())
        self.recipe = recipe
        # like a translator: a sentence is cut as the translator cuts it
        self.sentences = None if recipe.like is None else Sentences(vocab)
        self.is_stream = recipe.sequence == "stream"
        self.end = None if self.is_stream else END
        if self.is_stream:  # what stands before a line's first token
            newline = vocab.ids.get("\n", len(vocab) - 1) if recipe.unit == "char" else END
            self.begin = newline

    @property
    def banned(self) -> tuple[int, ...]:
        """<end> is written where it ends a line; characters have a line end of their own."""
        return (UNKNOWN, END) if self.is_stream and self.recipe.unit == "char" else (UNKNOWN,)

    def split(self, text: str) -> list[str]:
        return self.vocab.split(text) if self.sentences is None else self.sentences.split(text)

    def text(self, tokens: Sequence[str]) -> str:
        if self.sentences is not None:
            return self.sentences.text(tokens)
        if self.recipe.unit == "char" or not self.is_stream:
            return self.vocab.text(tokens)
        lines: list[list[str]] = [[]]
        for token in tokens:
            lines.append([]) if token == SPECIALS[END] else lines[-1].append(token)
        return "\n".join(map(self.vocab.text, lines))

    def stream(self, text: str) -> Tokens:
        """The whole text as one sequence; by words or pieces, each line ends with <end>."""
        if self.recipe.unit == "char":
            return np.asarray(self.vocab.encode(text), dtype=np.int64)
        ends = [[*self.vocab.encode(line), END] for line in text.split("\n")]
        return np.asarray([token for line in ends for token in line], dtype=np.int64)

    def lines(self, text: str) -> list[list[int]]:
        encoded = (self.ids(self.split(line)) for line in text.split("\n") if line.strip())
        return [[BEGIN, *ids, END] for ids in encoded if ids]


@dataclass(frozen=True)
class PromptReader:
    """A language model reads nothing: a source is the prompt that it continues."""

    codec: TextCodec
    takes: Literal["file", "text"] = "text"
    batch: int = 1  # prompts of different lengths are continued one by one

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        if whole or not source:
            return [Inputs(1)]
        prompt = np.array(self.codec.prefix(source, "prompt"), dtype=np.int64)
        return [Inputs(1, {"prompt": Stream(prompt[None])})]


def reader(folder: Path, recipe: LanguageModelRecipe, about: Mapping[str, Any]) -> PromptReader:
    return PromptReader(codec(folder, recipe))


def codec(folder: Path, recipe: LanguageModelRecipe) -> TextCodec:
    return TextCodec(recipe, Vocabulary.load(folder / VOCAB))


def evaluate(
    model: Describer, data: Path | None, split: str, beam: int | None, intervals: bool = True
) -> Evaluation:
    """The perplexity of a text: the held-out part of the recipe's own if none is given."""
    try:
        text = held_out(model.recipe)[1] if data is None else read_text(data)
    except DataError as error:
        hint = "; --data FILE scores another" if data is None else ""
        raise DataError(f"{error}{hint}") from None
    unit = {"char": "character", "word": "word", "bpe": "piece"}[model.recipe.unit]
    what = f"held-out part of {model.recipe.text}" if data is None else str(data)
    return Evaluation(f"{what}, per {unit}", {"corpus": evaluate_text(model, text)})


def evaluate_text(model: Describer, text: str) -> dict[str, float]:
    stepper, codec = model.stepper, model.codec
    assert isinstance(codec, TextCodec)
    if codec.is_stream:
        nats, count = _stream_nats(stepper, codec.stream(text))
    else:
        nats, count = _line_nats(stepper, codec.lines(text))
    return scores(nats / max(1, count))


def scores(loss: float) -> dict[str, float]:
    """Nats (`loss`) and bits per token, and perplexity."""
    return {"loss": loss, "bits": loss / math.log(2), "perplexity": math.exp(min(loss, 700.0))}


def _stream_nats(stepper: Stepper, tokens: Tokens) -> tuple[float, int]:
    """In parallel parts, the first after the begin token, the others after what precedes them."""
    parts = max(1, min(EVALUATION_STREAMS, len(tokens) // (2 * EVALUATION_LENGTH)))
    share = -(-len(tokens) // parts)
    nats = _nats(stepper, np.concatenate([[stepper.begin], tokens[:share]])[None], 1)
    later = list(range(share, len(tokens), share))
    if later:
        block = np.full((len(later), EVALUATION_LENGTH + 1 + share), -1)
        for row, at in enumerate(later):
            known = tokens[at - EVALUATION_LENGTH - 1 : at + share]
            block[row, : len(known)] = known
        nats += _nats(stepper, block, EVALUATION_LENGTH + 1)
    return nats, len(tokens)


def _nats(stepper: Stepper, tokens: Tokens, scored: int) -> float:
    """Of the columns from `scored` on of (N, T) tokens; −1 is none."""
    rows = np.arange(len(tokens))
    state, nats = stepper.start(ContextSet.empty(len(tokens))), 0.0
    for t in range(1, tokens.shape[1]):
        result = stepper.step(state, np.maximum(tokens[:, t - 1], 0))
        state = result.state
        if t >= scored:
            known = tokens[:, t] >= 0
            nats -= float(result.log_probs[rows, tokens[:, t]][known].sum(dtype=np.float64))
    return nats


def _line_nats(stepper: Stepper, lines: list[list[int]]) -> tuple[float, int]:
    nats, count = 0.0, 0
    for _, rows in similar([len(line) for line in lines], LINES):
        written = [lines[row][1:] for row in rows]  # after the begin token
        for scored in search.rescore(stepper, ContextSet.empty(len(rows)), written):
            nats, count = nats - scored.log_prob, count + len(scored.tokens)
    return nats, count


def held_out(recipe: LanguageModelRecipe) -> tuple[str, str]:
    """The text to train on and the held-out one."""
    text = read_text(recipe.text)
    if recipe.held_out_text is not None:
        return text, read_text(recipe.held_out_text)
    if not 0 < recipe.held_out < 1:
        raise DataError(f"held_out={recipe.held_out}: give a share between 0 and 1")
    cut = int(len(text) * (1 - recipe.held_out))
    if not text[:cut].strip() or not text[cut:].strip():
        raise DataError(f"{recipe.text} is too short to keep {recipe.held_out:.0%} of it aside")
    return text[:cut], text[cut:]
