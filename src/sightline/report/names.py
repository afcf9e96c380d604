"""How scores are called and shown: BLEU-4 and hundredths, as in papers."""

from __future__ import annotations

import math

_NAMES = {
    "meteor": "METEOR",
    "rouge_l": "ROUGE-L",
    "cider": "CIDEr",
    "cider_d": "CIDEr-D",
    "cider_plain": "CIDEr (plain)",
    "wer": "WER",
    "per": "PER",
    "sacrebleu": "BLEU (sacreBLEU)",
    "chrf": "chrF",
}
_HUNDREDTHS = ("bleu", "meteor", "rouge", "cider", "wer", "per")


def label_of(key: str) -> str:
    if key in _NAMES:
        return _NAMES[key]
    if key.startswith("bleu_"):
        number, _, rest = key.removeprefix("bleu_").partition("_")
        return f"BLEU-{number}" + (" (no BP)" if rest == "nobp" else "")
    return key.replace("_", " ").capitalize()


def scale_of(key: str) -> float:
    """What a value is multiplied by to be shown."""
    return 100.0 if key.split("_")[0] in _HUNDREDTHS else 1.0


def shown(key: str, value: float) -> str:
    if not math.isfinite(value):
        return "–"
    scaled = value * scale_of(key)
    return f"{scaled:.1f}" if scale_of(key) > 1 or abs(scaled) >= 10 else f"{scaled:.3g}"
