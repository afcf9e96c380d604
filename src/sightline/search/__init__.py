"""Search over any Stepper, in NumPy, many examples at a time: greedy, sampling, beam.

A search is a generator of snapshots, one per step, so that a page can show partial results;
`finish` runs it to its end. What an example yields does not depend on the batch around it: ties
go to the lower slot and token, and random draws come from a stream of the example's own.

Lengths count tokens, the end token included.
"""

from __future__ import annotations

from sightline.search.beam import BeamOptions, beam
from sightline.search.constraints import Constrained, constrain
from sightline.search.sample import greedy, rescore, sample
from sightline.search.tree import Snapshot, TreeNode, finish

__all__ = [
    "BeamOptions", "Constrained", "Snapshot", "TreeNode", "beam", "constrain", "finish", "greedy",
    "rescore", "sample",
]  # fmt: skip
