"""Figures: where each word looked, alignments, text shaded by surprise, training curves."""

from sightline.figures.alignment import draw_alignment
from sightline.figures.animation import animate_attention
from sightline.figures.attention import compare_attention, draw_attention
from sightline.figures.curves import draw_curves
from sightline.figures.draw import draw
from sightline.figures.lengths import draw_quality_by_length
from sightline.figures.points import draw_points
from sightline.figures.reliability import draw_reliability
from sightline.figures.surprise import draw_surprise
from sightline.figures.underlined import draw_underlined

__all__ = [
    "animate_attention",
    "compare_attention",
    "draw",
    "draw_alignment",
    "draw_attention",
    "draw_curves",
    "draw_points",
    "draw_quality_by_length",
    "draw_reliability",
    "draw_surprise",
    "draw_underlined",
]
