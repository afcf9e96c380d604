"""`score` and `compare`: hypotheses and references in, a dictionary of results out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from sightline.errors import ConfigError, MissingPackageError
from sightline.metrics import bootstrap
from sightline.metrics.accuracy import Accuracy
from sightline.metrics.alignment import AlignmentErrorRate
from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo
from sightline.metrics.bleu import Bleu
from sightline.metrics.brackets import Brackets
from sightline.metrics.cider import Cider, DocumentFrequencies
from sightline.metrics.error_rate import ErrorRate
from sightline.metrics.meteor_metric import MeteorMetric
from sightline.metrics.perplexity import Perplexity
from sightline.metrics.rouge import RougeL
from sightline.metrics.translation import SacreBleu

DEFAULT = ("bleu", "meteor", "rouge_l", "cider")
_METRICS: dict[str, Callable[[DocumentFrequencies | None], Metric]] = {
    "bleu": lambda _: Bleu(),
    "bleu_nobp": lambda _: Bleu(brevity_penalty=False),
    "meteor": lambda _: MeteorMetric(),
    "rouge_l": lambda _: RougeL(),
    "cider": lambda known: Cider(frequencies=known),
    "cider_d": lambda known: Cider(key="cider_d", frequencies=known),
    "cider_plain": lambda known: Cider(plain=True, key="cider_plain", frequencies=known),
    "wer": lambda _: ErrorRate("wer"),
    "per": lambda _: ErrorRate("per"),
    "sacrebleu": lambda _: SacreBleu(),
    "chrf": lambda _: SacreBleu("chrf"),
    "accuracy": lambda _: Accuracy(),
    "brackets": lambda _: Brackets(),
}
# Of scores that do not come from texts: those of training, and of likelihoods and alignments.
_INFO: dict[str, ScoreInfo] = {
    "loss": ScoreInfo("Loss (nats)", 1, False, {"int16": 0.001, "int8": 0.01}, decimals=4),
    "bits": ScoreInfo("Bits", higher_is_better=False, decimals=4),
    "exact": ScoreInfo("Exact match", 100),
    "valid": ScoreInfo("Valid", 100),
    "area": ScoreInfo("Area covered", 100),
    "excess": ScoreInfo("Longer than the best", 100, higher_is_better=False),
    "triangles": ScoreInfo("Triangles found", 100),
    "training_loss": ScoreInfo("Loss in training (nats)", higher_is_better=False, decimals=4),
    **Perplexity.info,
    **AlignmentErrorRate.info,
}
_KEYS: dict[str, str] = {}  # score key → the name of its metric


def register(name: str, make: Callable[[DocumentFrequencies | None], Metric]) -> None:
    """Make a metric known to `score`, `info` and all that shows its scores.

    >>> register("cer", lambda _: ErrorRate("cer"))
    """
    info = make(None).info
    _METRICS[name] = make
    _KEYS.update(dict.fromkeys(info, name))
    _INFO.update(info)


for _name, _make in list(_METRICS.items()):
    register(_name, _make)


def info(key: str) -> ScoreInfo:
    """The label, scale, direction and tolerance of a score; of unknown ones a plain default."""
    return _INFO.get(key) or ScoreInfo(key.replace("_", " ").capitalize(), decimals=None)


class Scores(TypedDict):
    """What `score` returns; every part is by score key, `per_item` by item and then by key."""

    corpus: dict[str, float]
    signatures: dict[str, str]
    intervals: dict[str, list[float]]
    per_item: dict[Any, dict[str, float]]
    notes: list[str]


class Comparison(TypedDict):
    """What `compare` returns: first minus second, by score key."""

    first: dict[str, float]
    second: dict[str, float]
    difference: dict[str, float]
    intervals: dict[str, list[float]]
    p: dict[str, float]
    signatures: dict[str, str]
    notes: list[str]


def score(
    hypotheses: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    metrics: Sequence[str] | None = None,
    *,
    intervals: bool = True,
    lenient: bool = False,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = bootstrap.SEED,
    document_frequencies: DocumentFrequencies | None = None,
) -> Scores:
    """Score texts against their references, both given by id.

    Without `metrics`: BLEU-1 to 4, METEOR, ROUGE-L and CIDEr as the COCO caption evaluation
    computes them. METEOR is left out, with a note, where its tables are not installed; with
    `lenient` so is each of `metrics` that needs a package that is not there.
    """
    corpus = Corpus.of(hypotheses, references)
    run = _Run(metrics, corpus, document_frequencies, lenient)
    ids = corpus.ids
    del corpus  # the tokenised texts, before there are scores of every item
    result: Scores = {
        "corpus": run.by_key(run.corpus_scores(run.statistics)),
        "signatures": run.signatures,
        "intervals": {},
        "per_item": run.per_item(ids),
        "notes": run.notes,
    }
    if intervals and run.metrics:
        samples = bootstrap.resample(run.metrics, run.statistics, resamples, seed)
        result["intervals"] = run.by_key([bootstrap.interval(values).T for values in samples])
    return result


def compare(
    first: Mapping[Any, str],
    second: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    metrics: Sequence[str] | None = None,
    *,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = bootstrap.SEED,
    document_frequencies: DocumentFrequencies | None = None,
) -> Comparison:
    """The difference between two systems on the same items, with paired bootstrap intervals."""
    corpus = Corpus.of(first, references)
    other = Corpus.of(second, references)
    if corpus.ids != other.ids:  # the same ids in another order
        other = Corpus.of({item: second[item] for item in corpus.ids}, references)
    run = _Run(metrics, corpus, document_frequencies)
    opposed = [metric.statistics(other) for metric in run.metrics]
    ours, theirs = run.corpus_scores(run.statistics), run.corpus_scores(opposed)
    resampled = (
        bootstrap.resample(run.metrics, rows, resamples, seed) for rows in (run.statistics, opposed)
    )
    samples = [one - two for one, two in zip(*resampled, strict=True)]
    return {
        "first": run.by_key(ours),
        "second": run.by_key(theirs),
        "difference": run.by_key([one - two for one, two in zip(ours, theirs, strict=True)]),
        "intervals": run.by_key([bootstrap.interval(values).T for values in samples]),
        "p": run.by_key([bootstrap.p_value(values) for values in samples]),
        "signatures": run.signatures,
        "notes": run.notes,
    }


class _Run:
    """The requested metrics, and their statistics of one corpus."""

    def __init__(
        self,
        names: Sequence[str] | None,
        corpus: Corpus,
        frequencies: DocumentFrequencies | None,
        lenient: bool = False,
    ) -> None:
        wanted = {_metric_name(name): None for name in (DEFAULT if names is None else names)}
        self._names = set(DEFAULT if names is None else names)
        self.notes: list[str] = []
        self.metrics: list[Metric] = []
        self.statistics: list[Floats] = []
        for name in wanted:
            metric = _METRICS[name](frequencies)
            try:
                rows = metric.statistics(corpus)
            except MissingPackageError as error:
                if names is not None and not lenient:
                    raise
                self.notes.append(f"{info(name).label} is left out: {error}")
                continue
            self.metrics.append(metric)
            self.statistics.append(rows)

    def corpus_scores(self, statistics: Sequence[Floats]) -> list[Floats]:
        pairs = zip(self.metrics, statistics, strict=True)
        return [metric.corpus_scores(rows) for metric, rows in pairs]

    def _shown(self, key: str) -> bool:
        return key in self._names or _KEYS[key] in self._names

    def by_key(self, values: Sequence[Floats]) -> dict[str, Any]:
        """One value (a number, or a list of two) by key from one array (K, …) per metric."""
        return {
            key: value
            for metric, rows in zip(self.metrics, values, strict=True)
            for key, value in zip(metric.keys, rows.tolist(), strict=True)
            if self._shown(key)
        }

    @property
    def signatures(self) -> dict[str, str]:
        pairs = ((key, metric.signature) for metric in self.metrics for key in metric.keys)
        return {key: signature for key, signature in pairs if self._shown(key)}

    def per_item(self, ids: Sequence[Any]) -> dict[Any, dict[str, float]]:
        keys = [key for metric in self.metrics for key in metric.keys]
        pairs = zip(self.metrics, self.statistics, strict=True)
        columns = [metric.item_scores(rows) for metric, rows in pairs]
        table = np.concatenate(columns, axis=1) if columns else np.empty((len(ids), 0))
        shown = [column for column, key in enumerate(keys) if self._shown(key)]
        names = [keys[column] for column in shown]
        rows = map(np.ndarray.tolist, table[:, shown])  # one by one: as lists they take much more
        return {
            item: dict(zip(names, row, strict=True)) for item, row in zip(ids, rows, strict=True)
        }


def _metric_name(name: str) -> str:
    """The metric of a name, which may also be the key of a single score such as bleu_4."""
    if name in _METRICS:
        return name
    if name in _KEYS:
        return _KEYS[name]
    near = difflib.get_close_matches(name.lower().replace("-", "_"), [*_METRICS, *_KEYS], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ConfigError(f"there is no metric {name!r}{hint} Known: {', '.join(_METRICS)}")
