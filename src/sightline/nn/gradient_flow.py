"""How far a gradient reaches back through a recurrent network.

What step t sends back to the state s_0 before the first step is the gradient of h_t times the
Jacobian ∂h_t/∂s_0, a product of t factors, one a step; of a vanilla layer they are diag(1 − h²) U.
Its largest singular value is by how much a gradient can grow on its way: at most σ^t, where σ is
the largest singular value of U. So below 1 it vanishes; above 1 it can explode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sightline.nn.recurrent import GATES, Recurrent


@torch.no_grad()
def reach(recurrent: Recurrent, inputs: Tensor) -> Tensor:
    """The largest singular value of ∂h_t/∂s_0 for t = 1 … T, (T,), from the state of zeros.

    Inputs (T, input_size). h is the top layer's, s_0 all that is carried on: every layer's h, and
    c of an LSTM.
    """
    state = recurrent.start(1)  # each part (layers, 1, H)
    size = sum(part.numel() for part in state)
    ways = torch.eye(size, dtype=inputs.dtype).split([part.numel() for part in state], 1)
    # ∂s_t/∂s_0, a row for each number of s_0
    tangents = tuple(way.view(size, *part.shape) for way, part in zip(ways, state, strict=True))
    projected, found = recurrent.project(inputs), []
    for now in projected.split(1):

        def advance(*before: Tensor, now: Tensor = now) -> tuple[Tensor, ...]:
            return recurrent.step(now, before)[1]

        def push(*tangent: Tensor) -> tuple[Tensor, ...]:
            pushed: tuple[Tensor, ...] = torch.func.jvp(advance, state, tangent)[1]  # noqa: B023
            return pushed

        tangents = torch.func.vmap(push)(*tangents)
        state = advance(*state)
        found.append(torch.linalg.matrix_norm(tangents[0][:, -1, 0], 2))
    return torch.stack(found)


def largest_singular_value(recurrent: Recurrent) -> float:
    """Of what makes a layer's (or its gates') new values of its old ones: U of the top layer."""
    _, matrix, _, _ = recurrent.weights(recurrent.layers - 1)
    blocks = matrix.detach().double().chunk(GATES[recurrent.kind])
    return max(float(torch.linalg.matrix_norm(block, 2)) for block in blocks)
