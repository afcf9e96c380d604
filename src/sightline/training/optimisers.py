"""Optimisers and the learning rate's course, made from their configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import SGD, Adadelta, Adagrad, Adam, AdamW, Optimizer, RMSprop

from sightline.config import OptimiserConfig, ScheduleConfig


def build_optimiser(config: OptimiserConfig, model: nn.Module) -> Optimizer:
    """The optimiser; weight decay acts on matrices only, not on biases."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            kind = (name.startswith("encoder."), parameter.dim() > 1)
            groups.setdefault(kind, []).append(parameter)
    settings = [
        {
            "params": parameters,
            "weight_decay": config.weight_decay if matrices else 0.0,
            "factor": config.encoder if in_encoder else 1.0,
        }
        for (in_encoder, matrices), parameters in sorted(groups.items(), key=lambda kind: kind[0])
    ]
    rate = config.learning_rate
    if config.kind == "sgd":
        return SGD(settings, lr=rate, momentum=config.momentum)
    if config.kind == "adagrad":
        return Adagrad(settings, lr=rate)
    if config.kind == "adadelta":
        return Adadelta(settings, lr=rate, rho=config.rho)
    if config.kind == "rmsprop":
        return RMSprop(settings, lr=rate, alpha=config.rho, momentum=config.momentum)
    adam = Adam if config.kind == "adam" else AdamW
    return adam(settings, lr=rate, betas=config.betas, fused=True)


def learning_rate_factor(config: ScheduleConfig, step: int, steps: int) -> float:
    """The factor on the learning rate for step number `step` (from 0) of `steps`."""
    warmup = config.warmup
    if step < warmup:
        return (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    if config.kind == "linear":
        return 1 + (config.final - 1) * progress
    if config.kind == "cosine":
        return config.final + (1 - config.final) * (1 + math.cos(math.pi * progress)) / 2
    if config.kind == "exponential":
        result: float = max(config.final, 1e-8) ** progress
        return result
    if config.kind == "inverse_sqrt":
        return math.sqrt(max(1, warmup) / (step + 1))
    return 1.0


def set_learning_rate(optimiser: Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate * group["factor"]


def clip_gradient(parameters: Iterable[nn.Parameter], norm: float, value: float = 0.0) -> float:
    """Scale the whole gradient down to this norm, then cut each number of it to ± `value`.

    0 leaves it. Returns the norm that it had.
    """
    every = list(parameters)
    before = torch.nn.utils.clip_grad_norm_(every, norm if norm > 0 else math.inf)
    if value > 0:
        torch.nn.utils.clip_grad_value_(every, value)
    return float(before)
