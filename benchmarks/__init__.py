"""Benchmarks: each file is one command, `python -m benchmarks.NAME`; all of them: `make bench`."""
