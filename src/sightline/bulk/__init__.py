"""Describing very many inputs: on this machine's processes or on Ray, each input exactly once."""
