"""Encoders, one per medium: Inputs to a ContextSet."""
