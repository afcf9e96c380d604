"""LanguageModel: a trained language model, to sample from and to score text with; not torch's.

What computes is given to it: a Network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import BEGIN, END, UNKNOWN, Vocabulary
from sightline.errors import UserError
from sightline.search.steppers import Prefixed, Stepper
from sightline.types import Description, Hypothesis

if TYPE_CHECKING:
    from sightline.tasks.language_model import LanguageModelRecipe

Tokens = NDArray[np.int64]

EVALUATION_STREAMS = 32  # parts in which a held-out text is read side by side
EVALUATION_LENGTH = 256  # tokens of context read before each part


class Network(Protocol):
    """What computes a language model's probabilities."""

    def stepper(self, begin: int, end: int | None, banned: Sequence[int]) -> Stepper: ...

    def stream_nats(self, tokens: Tokens, begin: int) -> tuple[float, int]:
        """Summed nats of one long text, and its number of tokens."""
        ...

    def line_nats(self, lines: list[list[int]]) -> tuple[float, int]:
        """The same of lines, each with its begin and end token."""
        ...


class Sampling(TypedDict, total=False):
    """The options of `search.sample` that make sense for one prompt."""

    temperature: float
    top_k: int
    top_p: float
    samples: int
    seed: int


class LanguageModel:
    """A trained language model, to sample from and to score text with."""

    def __init__(self, recipe: LanguageModelRecipe, vocab: Vocabulary, network: Network) -> None:
        self.recipe = recipe
        self.vocab = vocab
        self.network = network
        self.reader = TextReader(recipe, vocab)

    def stepper(self, banned: Sequence[int] = (UNKNOWN, END)) -> Stepper:
        end = END if self.recipe.sequence == "line" else None
        if end is not None or self.recipe.unit != "char":  # <end> is a line's end, to be written
            banned = [token for token in banned if token != END]
        return self.network.stepper(self.reader.begin, end, banned)

    def sample(
        self, prompt: str = "", *, length: int = 500, **options: Unpack[Sampling]
    ) -> list[Description]:
        """Text that goes on from `prompt`; temperature 0 takes the likeliest token each time."""
        drawn = self._search(prompt, length, options)
        return [self._describe(hypothesis) for hypothesis in search.finish(drawn)[0]]

    def stream(
        self, prompt: str = "", *, length: int = 500, **options: Unpack[Sampling]
    ) -> Iterator[str]:
        """One such text, piece by piece as it is written (the prompt included)."""
        tokens: list[int] = []
        shown = 0
        for snapshot in self._search(prompt, length, options):
            tokens.append(snapshot.newest_token)
            text = self.reader.text(tokens)
            if not text.endswith("\ufffd"):  # half a character is not shown
                yield text[shown:]
                shown = len(text)

    def read(self, text: str) -> Description:
        """A given text with the log-probability of each of its tokens (for short texts)."""
        tokens = self.reader.prompt(text)
        return self._describe(search.rescore(self.stepper(banned=()), 1, [tokens])[0])

    def evaluate(self, text: str) -> dict[str, float]:
        """nats (`loss`) and bits per token and perplexity of a text."""
        if self.recipe.sequence == "stream":
            nats, count = self.network.stream_nats(self.reader.stream(text), self.reader.begin)
        else:
            nats, count = self.network.line_nats(self.reader.lines(text))
        loss = nats / max(1, count)
        return {"loss": loss, "bits": loss / math.log(2), "perplexity": math.exp(min(loss, 700.0))}

    def _search(self, prompt: str, length: int, options: Sampling) -> Iterator[search.Snapshot]:
        prefix = self.reader.prompt(prompt)
        stepper = Prefixed(self.stepper(), [prefix])
        return search.sample(stepper, 1, max_length=len(prefix) + length, **options)

    def _describe(self, hypothesis: Hypothesis) -> Description:
        return Description(
            text=self.reader.text(hypothesis.tokens),
            tokens=tuple(self.vocab.tokens[token] for token in hypothesis.tokens),
            score=hypothesis.score,
            log_probs=tuple(float(value) for value in hypothesis.log_probs),
        )


class TextReader:
    """Text ↔ tokens in the form that a recipe trains on."""

    def __init__(self, recipe: LanguageModelRecipe, vocab: Vocabulary) -> None:
        self.recipe = recipe
        self.vocab = vocab
        # like a translator: a sentence is cut as the translator cuts it
        self.sentences = None if recipe.like is None else Sentences(vocab)
        self.begin = BEGIN
        if recipe.sequence == "stream":  # what stands before a line's first token
            newline = vocab.ids.get("\n", len(vocab) - 1) if recipe.unit == "char" else END
            self.begin = newline

    def stream(self, text: str) -> Tokens:
        """The whole text as one sequence; by words or pieces, each line ends with <end>."""
        if self.recipe.unit == "char":
            return np.asarray(self.vocab.encode(text), dtype=np.int64)
        ends = [[*self.vocab.encode(line), END] for line in text.split("\n")]
        return np.asarray([token for line in ends for token in line], dtype=np.int64)

    def lines(self, text: str) -> list[list[int]]:
        encoded = (self.encode(line) for line in text.split("\n") if line.strip())
        return [[BEGIN, *ids, END] for ids in encoded if ids]

    def split(self, text: str) -> list[str]:
        return self.vocab.split(text) if self.sentences is None else self.sentences.split(text)

    def encode(self, text: str) -> list[int]:
        if self.sentences is None:
            return self.vocab.encode(text)
        return self.sentences.ids(self.sentences.split(text))

    def prompt(self, text: str) -> list[int]:
        ids = self.encode(text)
        if UNKNOWN in ids:
            unknown = self.split(text)[ids.index(UNKNOWN)]
            raise UserError(f"the prompt has {unknown!r}, which is not in the model's vocabulary")
        return ids

    def text(self, tokens: Sequence[int]) -> str:
        if self.sentences is not None:
            return self.sentences.text([self.vocab.tokens[token] for token in tokens])
        if self.recipe.unit == "char" or self.recipe.sequence == "line":
            return self.vocab.decode(tokens)
        lines: list[list[int]] = [[]]
        for token in tokens:
            lines.append([]) if token == END else lines[-1].append(token)
        return "\n".join(self.vocab.decode(line) for line in lines)
