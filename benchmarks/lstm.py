"""Our LSTM layer's training step against `torch.nn.LSTM`'s, and its matrix products alone.

python -m benchmarks.lstm
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks import machine
from sightline.nn.recurrent import Recurrent

SIZES = [(64, 128, 512), (32, 128, 512), (64, 20, 512), (16, 64, 1024)]  # batch, steps, width
REPEATS = 7


def main() -> None:
    print(machine.describe())
    print("batch steps width      ours   nn.LSTM  ratio   step by step   products alone")
    for batch, steps, width in SIZES:
        theirs = torch.nn.LSTM(width, width, batch_first=True)
        ours = Recurrent("lstm", width, width)
        ours.load_state_dict(theirs.state_dict())
        inputs = torch.randn(batch, steps, width, requires_grad=True)
        timed = interleaved(
            {
                "ours": lambda o=ours, x=inputs: o.sequence(x, o.start(len(x)))[0],
                "theirs": lambda t=theirs, x=inputs: t(x)[0],
                "steps": lambda o=ours, x=inputs: by_steps(o, x),
            }
        )
        # forward, and backward to inputs and to weights: three products each of W x and U h
        alone = 3 * 2 * batch * steps * 8 * width**2 / machine.peak_gflops() / 1e9
        print(
            f"{batch:5d} {steps:5d} {width:5d}  {timed['ours']:8.4f}  {timed['theirs']:8.4f}"
            f"  {timed['ours'] / timed['theirs']:5.2f}       {timed['steps']:8.4f}"
            f"         {alone:8.4f} s"
        )


def by_steps(recurrent: Recurrent, inputs: torch.Tensor) -> torch.Tensor:
    """The path a decoder with attention takes: one step at a time."""
    state, outputs = recurrent.start(len(inputs)), []
    projected = recurrent.project(inputs)
    for t in range(inputs.shape[1]):
        hidden, state = recurrent.step(projected[:, t], state)
        outputs.append(hidden)
    return torch.stack(outputs, 1)


def interleaved(functions: dict[str, Callable[[], torch.Tensor]]) -> dict[str, float]:
    """The best time of a forward and backward pass of each, taken in turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(REPEATS):
        for name, run in functions.items():
            began = time.perf_counter()
            run().square().sum().backward()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


if __name__ == "__main__":
    main()
