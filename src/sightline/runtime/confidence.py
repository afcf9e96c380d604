"""How often a description like this one is right: a logistic regression on what its search knows.

`sightline calibrate` fits it on held-out data, by what the task counts as right, and keeps it as
`confidence.json` in the model's folder. It sees one description and nothing around it: the same
confidence in a batch as alone, for the first hypothesis as for the others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import function_words
from sightline.errors import CheckpointError, UserError
from sightline.runtime.model_folder import reason, record_file
from sightline.types import Description

CONFIDENCE = "confidence.json"
# Probabilities: the geometric mean of all words, of those with a meaning of their own, the least
# of these; and the number of words. The margin to the second hypothesis and the spread of the beam
# added nothing to them (docs/lab/confidence.md).
FEATURES = ("mean", "content", "least", "words")


def features(description: Description) -> NDArray[np.float64]:
    """What a confidence is computed from, as FEATURES names it."""
    if not description.tokens:
        return np.zeros(len(FEATURES))
    log_probs, known = np.array(description.log_probs), function_words()
    content = log_probs[[token not in known for token in description.tokens]]
    content = content if len(content) else log_probs
    means = log_probs.mean(), content.mean(), content.min()
    return np.append(np.exp(means), len(log_probs))


@dataclass(frozen=True)
class Confidence:
    """p(right) = σ(bias + Σ weight · feature)."""

    bias: float
    weights: Mapping[str, float]  # by FEATURES

    def of(self, description: Description) -> float:
        factors = np.array([self.weights[name] for name in FEATURES])
        logit = self.bias + float(features(description) @ factors)
        return round(0.5 + 0.5 * math.tanh(logit / 2), 4)  # σ, without overflow

    def save(self, folder: Path, about: Mapping[str, object]) -> Path:
        """Write it into a model's folder; `about` says how it was fitted."""
        path, partial = folder / CONFIDENCE, folder / f".{CONFIDENCE}"
        content = {"bias": self.bias, "weights": dict(self.weights), **about}
        try:
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            partial.replace(path)
            record_file(folder, CONFIDENCE)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        return path


def read_confidence(folder: Path) -> Confidence | None:
    """A model's, if it was calibrated."""
    path = folder / CONFIDENCE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        weights = {name: float(content["weights"][name]) for name in FEATURES}
        found = Confidence(float(content["bias"]), weights)
        if not all(map(math.isfinite, (found.bias, *weights.values()))):
            raise ValueError("not a number")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        again = "make it anew with `sightline calibrate`, or remove it"
        raise CheckpointError(f"{path} is damaged ({reason(error)}); {again}") from None
    return found
