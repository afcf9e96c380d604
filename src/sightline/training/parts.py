"""One step's gradient from parts of its batch: of several processes, or of one with less memory.

The batch of a step is the same for any number of processes. Its examples are cut into parts, which
the processes take in turn; the losses of the parts add up to the batch's (`Batch.part`), and so do
their gradients. What is drawn for an example belongs to its place in the batch; dropout and what
else is drawn by the way, to the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sightline.nn.losses import Loss
from sightline.nn.model import Batch
from sightline.training import distributed


@dataclass
class Found:
    """What a batch, or a part of it, came to."""

    nats: float = 0.0
    tokens: int = 0
    finite: bool = True
    parts: dict[str, float] = field(default_factory=dict)
    mean_over: int = 0
    rewards: tuple[float, ...] = ()
    stop: bool = False  # a process was asked to
    examples: int = 1

    @staticmethod
    def of(loss: Loss, examples: int = 1) -> Found:
        return Found(
            loss.nats,
            loss.tokens,
            bool(torch.isfinite(loss.total)),
            loss.parts,
            loss.mean_over,
            loss.rewards,
            examples=examples,
        )

    @staticmethod
    def together(found: Sequence[Found]) -> Found:
        examples = sum(each.examples for each in found)
        keys = dict.fromkeys(key for each in found for key in each.parts)
        parts = {
            key: sum(each.examples * each.parts.get(key, 0.0) for each in found) / examples
            for key in keys
        }
        return Found(
            sum(each.nats for each in found),
            sum(each.tokens for each in found),
            all(each.finite for each in found),
            parts,
            sum(each.mean_over for each in found),
            tuple(reward for each in found for reward in each.rewards),
        )


def seed_of(seed: int, step: int, part: int = 0) -> int:
    """Of what is drawn in a step: 0 for what belongs to the examples, then one for each part."""
    return int(np.random.SeedSequence([seed, step, part]).generate_state(1)[0]) % (2**31 - 1)


def whole_gradient(model: Any, batch: Batch, carry: Any) -> tuple[Found, Any]:
    """Of a batch in one piece."""
    loss, state = model.loss(batch, carry)
    loss.total.backward()
    return Found.of(loss), state


def shared_gradient(
    model: Any,
    batch: Batch,
    carry: Any,
    parts: int,
    device: torch.device,
    seeds: tuple[int, int],
    *,
    stop: bool = False,
) -> tuple[Found, dict[int, Any]]:
    """Of a batch in parts, ours and those of other processes; ours of what is carried over.

    `seeds` are the run's and the step's number.
    """
    found: dict[int, Found] = {}
    states: dict[int, Any] = {}
    for index in range(distributed.rank(), parts, distributed.size()):
        part = batch.part(index, parts).to(device)
        if not len(part.inputs):
            continue
        torch.manual_seed(seed_of(*seeds, index + 1))
        loss, states[index] = model.loss(part, _carried(model, carry, part, index))
        (loss.total * loss.mean_over if loss.mean_over else loss.total).backward()
        found[index] = Found.of(loss, len(part.inputs))
    parameters = list(model.parameters())
    told = distributed.gathered((found, [p.grad is not None for p in parameters], stop))
    every = {index: each for one, *_ in told for index, each in one.items()}
    together = Found.together([every[index] for index in sorted(every)])
    together.stop = any(asked for *_, asked in told)
    learned = [any(has) for has in zip(*(has for _, has, _ in told), strict=True)]
    distributed.sum_gradients(parameters, learned, float(together.mean_over or 1))
    if together.rewards:
        model.follow(together.rewards)
    return together, states


def _carried(model: Any, carry: Any, part: Batch, index: int) -> Any:
    """The state that a part goes on from: its own, or its rows of a whole batch's."""
    if carry is None or isinstance(carry, Mapping):
        return None if carry is None else carry.get(index)
    rows = slice(part.first, part.first + len(part.targets))
    return model.carried([tensor[:, rows] for tensor in carry.tensors])


def whole_carry(carry: Any) -> list[Tensor]:
    """The tensors of what all parts carry over, as those of the batch (layers, N, H)."""
    if carry is None:
        return []
    if not isinstance(carry, Mapping):
        return list(carry.tensors)
    mine = {index: [t.cpu() for t in state.tensors] for index, state in carry.items()}
    every = {i: tensors for one in distributed.gathered(mine) for i, tensors in one.items()}
    return [torch.cat(rows, 1) for rows in zip(*(every[i] for i in sorted(every)), strict=True)]
