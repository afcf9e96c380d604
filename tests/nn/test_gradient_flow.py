"""The Jacobian over time against finite differences and against the lecture's product."""

import numpy as np
import pytest
import torch

from sightline.nn.gradient_flow import largest_singular_value, reach
from sightline.nn.recurrent import Recurrent

T, D, H = 6, 3, 4


def setting(kind, layers):
    torch.manual_seed(0)
    recurrent = Recurrent(kind, D, H, layers).double()
    for parameter in recurrent.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    return recurrent, torch.randn(T, D, dtype=torch.float64)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_reach_by_finite_differences(kind, layers):
    recurrent, inputs = setting(kind, layers)
    start = recurrent.start(1)
    sizes = [part.numel() for part in start]

    def outputs(flat):
        parts = torch.from_numpy(flat).split(sizes)
        state = tuple(p.view(s.shape) for p, s in zip(parts, start, strict=True))
        with torch.no_grad():
            return recurrent.sequence(inputs[None], state)[0][0].numpy()  # (T, H)

    small, zero = 1e-6, np.zeros(sum(sizes))
    columns = [
        (outputs(zero + small * way) - outputs(zero - small * way)) / (2 * small)
        for way in np.eye(len(zero))
    ]
    jacobians = np.stack(columns, -1)  # (T, H, S)
    expected = [np.linalg.svd(each, compute_uv=False)[0] for each in jacobians]
    np.testing.assert_allclose(reach(recurrent, inputs).numpy(), expected, rtol=1e-6)


def test_a_vanilla_layer_multiplies_its_matrix_and_stays_below_the_bound():
    recurrent, inputs = setting("rnn", 1)
    w, u, b, c = (p.detach().numpy() for p in recurrent.weights(0))
    h, product, expected = np.zeros(H), np.eye(H), []
    for x in inputs.numpy():
        h = np.tanh(w @ x + b + u @ h + c)
        product = np.diag(1 - h**2) @ u @ product
        expected.append(np.linalg.norm(product, 2))
    found = reach(recurrent, inputs).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    sigma = largest_singular_value(recurrent)
    assert sigma == pytest.approx(np.linalg.norm(u, 2))
    assert (found <= sigma ** np.arange(1, T + 1)).all()
