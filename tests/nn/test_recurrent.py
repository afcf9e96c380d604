"""The cells against PyTorch's own modules, and against finite differences."""

import pytest
import torch

from sightline.nn.device import products_in
from sightline.nn.recurrent import Recurrent

MODULES = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
KINDS = list(MODULES)


def pair(kind, layers, dtype=torch.float64):
    """Our stack and PyTorch's, with the same weights."""
    torch.manual_seed(0)
    theirs = MODULES[kind](5, 7, layers, batch_first=True).to(dtype)
    ours = Recurrent(kind, 5, 7, layers).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def run_by_steps(ours, inputs, state):
    outputs = []
    for t in range(inputs.shape[1]):
        hidden, state = ours.step(ours.project(inputs[:, t]), state)
        outputs.append(hidden)
    return torch.stack(outputs, 1), state


def random_state(kind, layers):
    parts = 2 if kind == "lstm" else 1
    return tuple(torch.randn(layers, 3, 7, dtype=torch.float64) for _ in range(parts))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("path", ["sequence", "step"])
def test_outputs_and_gradients_equal_torch(kind, layers, path):
    ours, theirs = pair(kind, layers)
    inputs = torch.randn(3, 6, 5, dtype=torch.float64)
    start = random_state(kind, layers)
    weights = torch.randn(3, 6, 7, dtype=torch.float64)
    run = ours.sequence if path == "sequence" else lambda x, s: run_by_steps(ours, x, s)

    def gradients(module, run):
        given = inputs.clone().requires_grad_()
        before = tuple(part.clone().requires_grad_() for part in start)
        module.zero_grad()
        outputs, state = run(given, before)
        ((outputs * weights).sum() + sum(part.square().sum() for part in state)).backward()
        named = {name: p.grad.clone() for name, p in module.named_parameters()}
        return [outputs, *state], [given.grad, *(b.grad for b in before)], named

    def run_theirs(x, s):
        outputs, state = theirs(x, s if kind == "lstm" else s[0])
        return outputs, state if kind == "lstm" else (state,)

    values, inputs_grad, named = gradients(ours, run)
    their_values, their_inputs_grad, their_named = gradients(theirs, run_theirs)
    torch.testing.assert_close(values, their_values)
    torch.testing.assert_close(inputs_grad, their_inputs_grad)
    torch.testing.assert_close(named, their_named)


@pytest.mark.parametrize("kind", KINDS)
def test_step_gradients_by_finite_differences(kind):
    ours = Recurrent(kind, 3, 4, 2).double()
    inputs = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    start = tuple(
        torch.randn(2, 2, 4, dtype=torch.float64, requires_grad=True) for _ in ours.start(2)
    )

    def step(x, *state):
        hidden, after = ours.step(ours.project(x), state)
        return hidden, *after

    assert torch.autograd.gradcheck(step, (inputs, *start))


@pytest.mark.parametrize("kind", KINDS)
def test_projecting_in_two_parts_equals_projecting_at_once(kind):
    ours = Recurrent(kind, 5, 7)
    left, right = torch.randn(4, 3), torch.randn(4, 2)
    together = ours.project(torch.cat([left, right], -1))
    torch.testing.assert_close(
        ours.project(left) + right @ ours.weights(0)[0][:, -right.shape[-1] :].t(), together
    )


def test_dropout_between_layers_acts_in_training_only():
    ours = Recurrent("lstm", 5, 7, 2, dropout=0.5)
    inputs, state = torch.randn(2, 4, 5), ours.start(2)
    ours.train()
    assert not torch.equal(ours.sequence(inputs, state)[0], ours.sequence(inputs, state)[0])
    ours.eval()
    torch.testing.assert_close(
        ours.sequence(inputs, state)[0], run_by_steps(ours, inputs, state)[0]
    )


def test_a_fused_lstm_rounds_where_products_may():
    torch.manual_seed(0)
    ours = Recurrent("lstm", 16, 32)
    inputs = torch.randn(4, 20, 16)

    def run():
        ours.zero_grad()
        outputs, state = ours.sequence(inputs, ours.start(4))
        outputs.square().sum().backward()
        return outputs.detach(), [p.grad.clone() for p in ours.parameters()], state

    exact, gradients, _ = run()
    with products_in("bfloat16"):
        rounded, near, state = run()
    assert {each.dtype for each in (rounded, *near, *state)} == {torch.float32}
    assert float((rounded - exact).abs().max()) < 0.01
    for one, other in zip(near, gradients, strict=True):
        assert float((one - other).norm() / other.norm()) < 0.02
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        assert not torch.equal(rounded, exact)
