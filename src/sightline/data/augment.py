"""Changes of sound in training, on its filter banks; a function of the generator alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.config import SoundAugmentConfig

Floats = NDArray[np.float32]


def stretched(static: Floats, config: SoundAugmentConfig, rng: np.random.Generator) -> Floats:
    """Filter banks (T, 1 + bands) said faster or slower, by a longer or shorter vocal tract."""
    if config.speed:
        factor = rng.uniform(1 - config.speed, 1 + config.speed)
        static = _at(static, np.arange(0, len(static) - 0.5, factor))
    if config.tract:
        factor = rng.uniform(1 - config.tract, 1 + config.tract)
        bands = static[:, 1:].T  # the first is the energy
        warped = _at(bands, np.minimum(np.arange(len(bands)) * factor, len(bands) - 1)).T
        static = np.concatenate([static[:, :1], warped], axis=1)
    return static


def masked(
    features: Floats, bands: int, config: SoundAugmentConfig, rng: np.random.Generator
) -> Floats:
    """SpecAugment on (T, 3·(1 + bands)): stretches of time and ranges of bands set to 0."""
    features = features.copy()
    for _ in range(config.time_masks):  # at most a tenth of the utterance each
        size = int(rng.integers(min(config.longest_mask, len(features) // 10) + 1))
        start = int(rng.integers(len(features) - size + 1))
        features[start : start + size] = 0
    for _ in range(config.band_masks):
        size = int(rng.integers(min(config.widest_mask, bands) + 1))
        start = 1 + int(rng.integers(bands - size + 1))
        for part in range(0, features.shape[1], 1 + bands):
            features[:, part + start : part + start + size] = 0
    return features


def _at(rows: Floats, places: NDArray[np.float64]) -> Floats:
    """Rows at places between them, by linear interpolation."""
    left = np.clip(places.astype(np.int64), 0, max(0, len(rows) - 2))
    right = np.minimum(left + 1, len(rows) - 1)
    share = (places - left)[:, None].clip(0, 1).astype(np.float32)
    between: Floats = rows[left] * (1 - share) + rows[right] * share
    return between
