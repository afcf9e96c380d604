"""Reading a context set many times, and backwards: as autograd does it."""

import torch

from sightline.nn.encoders.text import reverse
from sightline.nn.kernels.reading import WeightedSums


def test_weighted_sums_have_the_gradients_of_products():
    torch.manual_seed(0)
    groups, each, positions, size, steps = 3, 2, 5, 4, 6
    values = torch.randn(groups, positions, size, dtype=torch.float64)
    first = torch.randn(groups * each, positions, dtype=torch.float64)

    def run(own):
        given, weights = values.clone().requires_grad_(), first.clone().requires_grad_()
        sums = WeightedSums(given * 2)
        now, total = weights, torch.zeros((), dtype=torch.float64)
        for _ in range(steps):  # each step's weights depend on the sum before
            if own:
                found = sums(now)
            else:
                found = torch.bmm(now.view(groups, each, positions), given * 2).flatten(0, 1)
            total = total + found.square().sum()
            now = torch.softmax(now + found.sum(1, keepdim=True).sin(), 1)
        total.backward()
        return total.detach(), given.grad, weights.grad

    for one, other in zip(run(True), run(False), strict=True):
        torch.testing.assert_close(one, other)


def test_backwards_is_a_gather_with_its_gradient():
    torch.manual_seed(0)
    lengths = torch.tensor([5, 3, 1])
    sequence = torch.randn(3, 5, 2, dtype=torch.float64, requires_grad=True)
    turned = reverse(sequence, lengths)
    for row, length in zip(range(3), lengths.tolist(), strict=True):
        assert torch.equal(turned[row, :length], sequence[row, :length].flip(0))
        assert torch.equal(turned[row, length:], sequence[row, length:])
    assert torch.autograd.gradcheck(lambda x: reverse(x, lengths), sequence)
