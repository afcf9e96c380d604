"""Phones: ARPAbet as corpora write it, and TIMIT's 61 → 48 → 39 (Lee and Hon 1989)."""

from __future__ import annotations

import re
from collections.abc import Sequence

# 61 → 48: closures join what they close, or each other; the rest of the variants their phone
_TO_48 = {
    "ax-h": "ax", "axr": "er", "em": "m", "eng": "ng", "hv": "hh", "nx": "n", "ux": "uw",
    "pcl": "cl", "tcl": "cl", "kcl": "cl", "bcl": "vcl", "dcl": "vcl", "gcl": "vcl",
    "h#": "sil", "#h": "sil", "pau": "sil",
}  # fmt: skip
# 48 → 39, as results are reported
_TO_39 = {
    "ao": "aa", "ax": "ah", "ix": "ih", "el": "l", "en": "n", "zh": "sh",
    "cl": "sil", "vcl": "sil", "epi": "sil",
}  # fmt: skip
_KALDI = re.compile(r"^([A-Za-z]+)\d?(?:_[BIES])?$")  # a vowel's stress, a place in the word
# What synthesisers tell apart and the 39 phones of the CMU dictionary do not
_CMU = {"AX": "AH", "IX": "IH", "AXR": "ER", "DX": "T", "HV": "HH"}
PAUSES = frozenset(["PAU", "SIL", "SP", "SPN", "H#"])


def plain_phone(phone: str) -> str:
    """One of the CMU dictionary's 39 phones without stress or place: `IY0_E` → `IY`."""
    found = _KALDI.match(phone)
    name = (found[1] if found else phone).upper()
    return _CMU.get(name, name)


def timit_48(phones: Sequence[str]) -> list[str]:
    """The phones that are trained on; the glottal stop `q` is left out."""
    return [_TO_48.get(phone, phone) for phone in phones if phone != "q"]


def timit_39(phones: Sequence[str]) -> list[str]:
    """The classes that results are reported in, from 61 or from 48 phones."""
    return [_TO_39.get(phone, phone) for phone in timit_48(phones)]
