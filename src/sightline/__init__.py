"""Sightline: attention-based encoder-decoder networks that describe things and show where they looked."""

__version__ = "0.1.0"
