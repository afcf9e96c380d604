"""Describer: a trained model of any task. Read → encode → search → Description, without PyTorch.

What computes is given to it: an Encoder (Inputs → ContextSet) and a Stepper, from an export
(runtime/onnx.py) or from a run (nn/stepper.py). A captioner, a translator and a language model
differ in their Reader and Codec, not in this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.data.progress import counted
from sightline.data.vocabulary import UNKNOWN
from sightline.errors import DataError, UserError
from sightline.runtime.batches import joined, ranked, similar
from sightline.runtime.codec import Codec
from sightline.runtime.confidence import Confidence
from sightline.runtime.onnx import side_by_side, workers
from sightline.runtime.partial import Partial, partial_result
from sightline.search import BeamOptions, Snapshot
from sightline.search.constraints import (
    Banned,
    Constraint,
    MinLength,
    NoRepeatedNgrams,
    NoRepeatedWords,
    Prefix,
    Shortlist,
    constrain,
)
from sightline.search.naming import Naming
from sightline.search.steppers import Ensemble, Fusion, Stepper, posterior_attention, subset
from sightline.types import ContextSet, Description, Hypothesis, Inputs, Layout

if TYPE_CHECKING:
    from PIL.Image import Image

# a text; or a file, its bytes, its pixels
Source: TypeAlias = "str | bytes | Path | NDArray[Any] | Image"
BLOCK = 512  # texts read at a time
LONGEST_FORCED = 2000  # tokens of either side of a pair that `force` scores


class Encoder(Protocol):
    """Inputs to a context set: the only part that knows the medium."""

    def encode(self, inputs: Inputs) -> ContextSet: ...


class Reader(Protocol):
    """One source to Inputs: the same function in training, at the command line and in a service."""

    @property
    def takes(self) -> Literal["file", "text"]:
        """What a source is: a media file (a path, bytes, an array), or a text."""

    @property
    def batch(self) -> int:
        """How many examples one search takes together."""

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        """A source's parts, usually one; a text's sentences (unless `whole`), an empty one's none.

        A reader may take options of its medium besides, such as a picture's `focus`.
        """


@dataclass(frozen=True)
class Options:
    """What a search is asked for; None is what the model's recipe says."""

    beam: int | None = None
    n_best: int = 1
    prefix: str = ""  # what the output has to begin with
    shortlist: int = 0  # only so many common tokens, and those of the lexicon; 0 is all
    no_repeat: int | None = None  # no n-gram of this length twice; 0 allows all
    words_once: bool | None = None  # no content word twice
    groups: int = 1  # diverse beam search
    tags: bool = True  # use the words that the encoder names, where it does
    temperature: float | None = None  # draw instead of searching; 0 takes the likeliest each time
    top_k: int = 0  # drawing: only the k likeliest tokens
    top_p: float = 1.0  # drawing: only the likeliest tokens that hold this mass
    seed: int = 0  # drawing
    length: int | None = None  # tokens to write at most

    @staticmethod
    def of(given: dict[str, Any], defaults: Options) -> Options:
        known = [item.name for item in fields(Options)]
        for name in given:
            if name not in known:
                raise UserError(f"there is no option {name!r}; there are {', '.join(known)}")
        return replace(defaults, **given)


@dataclass(frozen=True)
class LanguageModelPrior:
    """A language model to add to the search (shallow fusion)."""

    stepper: Stepper
    weight: float
    ids: NDArray[np.int64] | None  # (V,): its id of each token; None: the same vocabulary


@dataclass(frozen=True)
class Describer:
    """A trained model: sources in, descriptions out."""

    task: str
    recipe: Any  # the task's dataclass
    reader: Reader
    codec: Codec
    stepper: Stepper
    encoder: Encoder | None = None  # None: a model that reads nothing
    prior: LanguageModelPrior | None = None
    defaults: Options = Options()
    confidence: Confidence | None = None  # of models that were calibrated

    # ------------------------------------------------------------------------- describing

    @overload
    def describe(self, sources: Source, *, progress: bool = ..., **options: Any) -> Description: ...

    @overload
    def describe(
        self, sources: Iterable[Source], *, progress: bool = ..., **options: Any
    ) -> list[Description]: ...

    def describe(
        self, sources: Source | Iterable[Source], *, progress: bool = False, **options: Any
    ) -> Description | list[Description]:
        """A Description of each source; of one, if one was given.

        A source is a file, its bytes or its pixels (an array or a Pillow image) for a model that
        reads media, and a text for one that reads text. Options are those of `Options`, and what
        the reader takes: `focus`, the part of a picture to look at, as x, y, width and height in
        fractions of it.
        """
        if isinstance(sources, str | bytes | Path | np.ndarray) or not isinstance(
            sources, Iterable
        ):
            return next(self.describe_each([sources], progress=progress, **options))
        return list(self.describe_each(list(sources), progress=progress, **options))

    def describe_each(
        self, sources: Sequence[Any], *, progress: bool = False, **options: Any
    ) -> Iterator[Description]:
        """The same one by one, in order; files are read as they are needed."""
        reading, ask = self._options(options)
        is_file = self.reader.takes == "file"
        # media are large, and read where they are searched; texts are sorted by size in blocks
        size, threads = (self.reader.batch, 1) if is_file else (BLOCK, workers(self.stepper))
        chunks = [sources[at : at + size] for at in range(0, len(sources), size)]

        def described(some: Sequence[Any]) -> list[Description]:
            inputs = [self.reader.read(source, **reading) for source in some]
            return self.describe_inputs(inputs, ask, threads)

        blocks = side_by_side(described, chunks, workers(self.stepper) if is_file else 1)
        each = (description for block in blocks for description in block)
        return counted(each, len(sources), "describing") if progress else each

    def describe_inputs(
        self, inputs: Sequence[list[Inputs]], ask: Options | None = None, threads: int = 0
    ) -> list[Description]:
        """Descriptions of what was read, searched in batches by size; a source's parts joined."""
        ask = ask or self.defaults
        if ask.prefix and any(len(several) > 1 for several in inputs):
            raise UserError("a prefix begins one sentence; describe the sentences one by one")
        parts = [part for several in inputs for part in several]
        batches = similar([part.size for part in parts], self.reader.batch)

        def searched(batch: tuple[int, list[int]]) -> list[list[Hypothesis]]:
            some = [parts[row] for row in batch[1]]
            if ask.shortlist:
                return self._shortlisted(some, ask, batch[0])
            return search.finish(self.search(some, ask, size=batch[0]))

        results: list[list[Description]] = [[] for _ in parts]
        every = side_by_side(searched, batches, threads or workers(self.stepper))
        for (_, rows), several in zip(batches, every, strict=True):
            for row, hypotheses in zip(rows, several, strict=True):
                results[row] = [self._description(h, parts[row]) for h in hypotheses]
        ordered = iter(results)
        return [joined([ranked(next(ordered)) for _ in several]) for several in inputs]

    def _shortlisted(
        self, inputs: Sequence[Inputs], ask: Options, size: int
    ) -> list[list[Hypothesis]]:
        """A search in the tokens that these examples may need."""
        layouts = [layout for each in inputs for layout in each.layouts]
        shortlist = self.codec.shortlist(layouts, ask.shortlist)
        steps = self.search(inputs, ask, size=size, shortlist=shortlist)
        return [
            [replace(h, tokens=tuple(shortlist[0][token] for token in h.tokens)) for h in some]
            for some in search.finish(steps)
        ]

    def stream(self, source: Any, **options: Any) -> Iterator[Partial | Description]:
        """What `describe` gives of one source, after a Partial for each step of the search.

        A text that is read in parts has no single search to show: it comes whole.
        """
        reading, ask = self._options(options)
        parts = self.reader.read(source, **reading)
        if len(parts) != 1:
            yield self.describe_inputs([parts], ask)[0]
            return
        tokens: list[int] = []
        for snapshot in self.search(parts, ask, keep_tree=True):
            if ask.temperature is None or ask.n_best > 1:
                yield self.partial(snapshot, 0, parts[0])
            else:  # a long text: what is written is not walked again at every step
                tokens.append(snapshot.newest_token)
                words = self.codec.words(tokens, None, _layout(parts[0]))
                yield Partial(snapshot.step, self.codec.text(words), tuple(words), (), None)
        yield self.descriptions(snapshot.hypotheses, parts)[0]

    def _options(self, given: dict[str, Any]) -> tuple[dict[str, Any], Options]:
        """Those of the reader, and those of the search."""
        focus = given.pop("focus", None)
        return {} if focus is None else {"focus": focus}, Options.of(given, self.defaults)

    # ------------------------------------------------------------- the same in parts, for servers

    def search(
        self,
        inputs: Sequence[Inputs],
        ask: Options,
        *,
        size: int = -1,
        keep_tree: bool = False,
        shortlist: tuple[list[int], NDArray[np.bool_]] | None = None,
    ) -> Iterator[Snapshot]:
        """Search for descriptions of examples together, step by step.

        `size` is that of their class of sizes, on which alone the longest output depends. With a
        shortlist, tokens (C,) and which each example may write (B, C), token i is tokens[i].
        """
        if size < 0:
            ((size, _),) = similar([max(each.size for each in inputs)], 1)
        given = self.codec.prefix(ask.prefix) if ask.prefix else []
        prefixes = [_prompt(each) or given for each in inputs]
        longest = max(map(len, prefixes)) + (ask.length or self.codec.max_length(size))
        batch = Inputs.batch(_with_bias(inputs))
        constraints = self._constraints(ask, prefixes)
        constraints += self.codec.constraints([_layout(each) for each in inputs], longest)
        if shortlist is not None:
            constraints.append(Shortlist(shortlist[1]))
        stepper = self._stepper(constraints, None if shortlist is None else shortlist[0])
        context = self.encode(batch)
        if not ask.tags:
            context = context.untagged(UNKNOWN)  # which no search writes
        if ask.temperature is None:
            return search.beam(stepper, context, self._beam(ask, longest, keep_tree))
        return search.sample(
            stepper, context, max_length=longest, temperature=ask.temperature,
            top_k=ask.top_k, top_p=ask.top_p, seed=ask.seed, samples=ask.n_best,
        )  # fmt: skip

    def encode(self, batch: Inputs) -> ContextSet:
        if self.encoder is None:
            return ContextSet.empty(len(batch))
        context = self.encoder.encode(batch)
        if "bias" not in batch:
            return context
        bias = batch["bias"].values  # of the layout's positions; tags are not steered
        tags = context.values.shape[1] - bias.shape[1]
        bias = np.pad(bias, ((0, 0), (0, tags)))
        members = tuple(replace(member, bias=bias) for member in context.members)
        return replace(context, bias=bias, members=members)

    def descriptions(
        self, hypotheses: Sequence[list[Hypothesis]], inputs: Sequence[Inputs]
    ) -> list[Description]:
        """The hypotheses of each example as its description."""
        return [
            ranked([self._description(h, each) for h in some])
            for some, each in zip(hypotheses, inputs, strict=True)
        ]

    def partial(self, snapshot: Snapshot, example: int, inputs: Inputs) -> Partial:
        """The state of one example's search after a step."""
        best = self._description(snapshot.hypotheses[example][0], inputs)
        return partial_result(snapshot, example, best, self.codec.names(_layout(inputs)))

    def check(self, ask: Options) -> None:
        """An error for what a search would refuse, before any work."""
        self.codec.prefix(ask.prefix)

    def _constraints(self, ask: Options, prefixes: list[list[int]]) -> list[Constraint]:
        constraints: list[Constraint] = [Banned(self.codec.banned)] if self.codec.banned else []
        if self.codec.search.min_length:
            constraints.append(MinLength(self.codec.search.min_length))
        ngrams = self.codec.search.no_repeat if ask.no_repeat is None else ask.no_repeat
        if ngrams:
            constraints.append(NoRepeatedNgrams(ngrams))
        once = self.codec.search.words_once if ask.words_once is None else ask.words_once
        if once and not any(self.codec.repeats(prefix) for prefix in prefixes):
            constraints.append(NoRepeatedWords(self.codec.content_words))
        return [*constraints, Prefix(prefixes)] if any(prefixes) else constraints

    def _stepper(
        self, constraints: Sequence[Constraint] = (), tokens: list[int] | None = None
    ) -> Stepper:
        """The model with its language model, if it has one, and what it may not write."""
        stepper = self.stepper if tokens is None else subset(self.stepper, tokens)
        if (ask := self.codec.search).naming and tokens is None:
            stepper = Naming(stepper, ask.naming, self.codec.sure_from)
        stepper = constrain(stepper, *constraints)
        if self.prior is None:
            return stepper
        ids = self.prior.ids
        if tokens is not None:
            ids = np.array(tokens) if ids is None else ids[tokens]
        return Fusion(stepper, self.prior.stepper, self.prior.weight, ids)

    def _beam(self, ask: Options, longest: int, keep_tree: bool) -> BeamOptions:
        size = max(ask.beam or self.codec.search.beam, ask.n_best)
        return BeamOptions(
            max_length=longest,
            size=-(-size // ask.groups) * ask.groups,
            length_penalty=self.codec.search.length_penalty,
            n_best=ask.n_best,
            groups=ask.groups,
            keep_tree=keep_tree,
        )

    def _description(self, hypothesis: Hypothesis, inputs: Inputs) -> Description:
        found = self.codec.description(hypothesis, _layout(inputs))
        sure = None if self.confidence is None else self.confidence.of(found)
        return replace(found, confidence=sure)

    # ------------------------------------------------------------------------- given outputs

    def force(
        self, sources: Sequence[Any], targets: Sequence[str], *, posterior: bool = False
    ) -> list[Description]:
        """Given outputs as if the model had written them: their log-probabilities and attention.

        Unlike in a search, unknown words count: they may be in what is given.

        With `posterior`, attention is where each token came from now that it is known (where the
        model has such a posterior; otherwise where it looked). An empty description stands for a
        pair with an empty side, or with more than LONGEST_FORCED tokens on one.
        """
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets are no pairs")
        read = [self.reader.read(source, whole=True) for source in sources]
        written = [self.codec.split(text) for text in targets]
        results = [Description("", (), 0.0, ()) for _ in read]
        usable = [
            i
            for i, (parts, tokens) in enumerate(zip(read, written, strict=True))
            if parts and tokens and max(parts[0].size, len(tokens)) <= LONGEST_FORCED
        ]
        stepper = self._stepper()
        for _, rows in similar([read[i][0].size for i in usable], self.reader.batch):
            chosen = [usable[row] for row in rows]
            end = [] if self.codec.end is None else [self.codec.end]
            ids = [[*self.codec.ids(written[i]), *end] for i in chosen]
            context = self.encode(Inputs.batch([read[i][0] for i in chosen]))
            forced = search.rescore(stepper, context, ids)
            known = posterior_attention(self.stepper, context, ids) if posterior else None
            if known is not None:
                forced = [replace(h, attention=w) for h, w in zip(forced, known, strict=True)]
            for i, hypothesis in zip(chosen, forced, strict=True):
                description = self.codec.description(hypothesis, _layout(read[i][0]))
                text = self.codec.text(written[i])  # unknown words as they were given
                results[i] = replace(description, text=text, tokens=tuple(written[i]))
        return results

    # ------------------------------------------------------------------------- together

    def ensemble(self, *others: Describer) -> Describer:
        """This model and others as one: the mean of their probabilities."""
        if not others:
            return self
        members = [self, *others]
        steppers = Ensemble([member.stepper for member in members])
        encoders = [member.encoder for member in members if member.encoder is not None]
        encoder = EnsembleEncoder(encoders) if len(encoders) == len(members) else None
        return replace(self, stepper=steppers, encoder=encoder, confidence=None)


@dataclass(frozen=True)
class EnsembleEncoder:
    """Several encoders of the same inputs; the members' context sets travel together."""

    encoders: Sequence[Encoder]

    def encode(self, inputs: Inputs) -> ContextSet:
        members = tuple(encoder.encode(inputs) for encoder in self.encoders)
        return replace(members[0], members=members)


def _layout(inputs: Inputs) -> Layout | None:
    return inputs.layouts[0] if inputs.layouts else None


def _prompt(inputs: Inputs) -> list[int]:
    """The tokens that the output continues, of a model that reads a prompt."""
    return [int(token) for token in inputs["prompt"].values[0]] if "prompt" in inputs else []


def _with_bias(inputs: Sequence[Inputs]) -> Sequence[Inputs]:
    """Where one example of a batch is steered, the others get a bias of zeros."""
    steered = next((each["bias"] for each in inputs if "bias" in each), None)
    if steered is None:
        return inputs
    level = replace(steered, values=np.zeros_like(steered.values))
    return [
        each if "bias" in each else replace(each, streams={**each.streams, "bias": level})
        for each in inputs
    ]
