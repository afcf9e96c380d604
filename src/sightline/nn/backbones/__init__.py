"""Convolutional networks whose parameter names are the published ones."""
