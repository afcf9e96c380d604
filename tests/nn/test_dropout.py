"""Dropout: what is left out, how the rest is scaled, and what the gradients are."""

import pytest
import torch

from sightline.nn.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_as_many_are_left_out_as_asked_and_the_mean_stays(rate):
    torch.manual_seed(0)
    out = Dropout(rate)(torch.ones(300, 1001))
    kept = out != 0
    deviation = (rate * (1 - rate) / out.numel()) ** 0.5
    assert abs(float(kept.float().mean()) - (1 - rate)) < 4 * deviation
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 1 / (1 - rate)))
    places = kept.float()
    # neighbours come from one draw: they must not go together
    together = (places[:, 1:] * places[:, :-1]).mean()
    assert abs(float(together) - (1 - rate) ** 2) < 6 * deviation


def test_the_gradient_is_that_of_what_was_kept():
    torch.manual_seed(0)
    given = torch.randn(7, 9, dtype=torch.float64, requires_grad=True)
    out = Dropout(0.3)(given)
    out.sum().backward()
    torch.testing.assert_close(given.grad, (out != 0).double() / 0.7)


def test_a_seed_repeats_it_and_the_next_draw_differs():
    drop, given = Dropout(0.5), torch.ones(33)
    torch.manual_seed(3)
    first, second = drop(given), drop(given)
    torch.manual_seed(3)
    assert torch.equal(drop(given), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("rate", [0.0, 1e-7, 1.0])
def test_the_ends_of_the_range(rate):
    out = Dropout(rate)(torch.ones(100))
    torch.testing.assert_close(out, torch.full((100,), float(rate < 1)))


def test_nothing_is_left_out_when_not_training():
    given = torch.randn(5)
    assert Dropout(0.5).eval()(given) is given
