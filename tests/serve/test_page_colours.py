"""The page's colours can be distinguished: WCAG's contrast, in light and dark."""

import re

import pytest

from sightline.serve.files import PAGE

LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root {(.*?)}", (PAGE / "style.css").read_text(), re.DOTALL)
)
PAIRS = [  # what is drawn, on what, and the least contrast of text, large text or edges
    ("ink", "paper", 4.5),
    ("ink", "raised", 4.5),
    ("ink", "light", 4.5),
    ("faint", "paper", 4.5),
    ("faint", "raised", 4.5),
    ("accent", "paper", 4.5),
    ("accent", "raised", 4.5),
    ("error", "raised", 3),
    ("faint", "light", 3),
    ("edge", "paper", 3),
    ("edge", "raised", 3),
]


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_contrast(colours):
    for drawn, ground, least in PAIRS:
        low, high = sorted(luminance(colours[name]) for name in (drawn, ground))
        assert (high + 0.05) / (low + 0.05) >= least, (drawn, ground)
