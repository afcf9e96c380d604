"""Data sets: the manifest, converters into it, and cached features."""
