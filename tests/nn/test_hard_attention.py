"""The REINFORCE estimator against the exact gradient of the bound, by enumerating every path."""

import itertools
from dataclasses import replace

import pytest
import torch

from given import given, vectors
from sightline.config import AttentionConfig, DecoderConfig, HardConfig, LossConfig
from sightline.nn.decoder import Decoder
from sightline.nn.losses import sequence_loss
from sightline.nn.model import Batch, EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.types import ContextSet

L, T, V, D = 3, 3, 6, 4
SAMPLES = 40_000


def tiny(**hard):
    torch.manual_seed(3)
    config = DecoderConfig(
        embedding=5, hidden=6, attention=AttentionConfig(size=4, hard=True), dropout=0.0
    )
    loss = LossConfig(hard=HardConfig(**hard), per="sequence")
    model = EncoderDecoder(given(D), Decoder(config, V, D), Likelihood(loss)).double().train()
    with torch.no_grad():  # sharp enough that places differ
        model.decoder.attention.score.weight.mul_(6)
        model.decoder.recurrent.weight_ih_l0.mul_(3)
    context = ContextSet(2 * torch.randn(1, L, D, dtype=torch.float64), torch.ones(1, L).bool())
    targets = torch.tensor([[1, 4, 5, 2]])  # <begin>, two words, <end>
    return model, context, targets


def inputs_of(context):
    return vectors(context.values, context.mask)


def flat_gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def path_terms(model, context, targets):
    """log p(y|s) and log p(s) of every path s, each path being a row."""
    paths = torch.tensor(list(itertools.product(range(L), repeat=T)))
    rows = len(paths)
    state = model.decoder.start(context, per_example=rows)
    before, after = targets[:, :-1].expand(rows, -1), targets[:, 1:].expand(rows, -1)
    decoded = model.decoder(before, state, chosen=paths)
    likelihood, _ = sequence_loss(model.decoder, decoded, after, model.objective.config)
    location = (decoded.weights.log() * decoded.used).sum((1, 2))
    return likelihood, location, decoded


def exact_gradient(model, context, targets, entropy=0.0):
    """Of L_s = Σ_s p(s|a) log p(y|s,a), plus λ_e times the expected entropy's own gradient."""
    model.zero_grad()
    likelihood, location, decoded = path_terms(model, context, targets)
    bound = (location.exp() * likelihood).sum()
    per_path = -(decoded.weights * decoded.weights.log()).sum((1, 2))
    # the estimator adds ∂H[s̃] along the sampled path: p(s) is not differentiated there
    (-bound - entropy * (location.exp().detach() * per_path).sum()).backward()
    return flat_gradient(model), float(bound.detach())


def estimates(model, context, targets, batches=40):
    """Independent estimates of the gradient, each from SAMPLES / batches paths."""
    found = []
    for _ in range(batches):
        model.zero_grad()
        rows = SAMPLES // batches
        model.hard.config = replace(model.hard.config, samples=rows)
        loss, _ = model.loss(Batch(targets, inputs_of(context)))
        loss.total.backward()
        found.append(flat_gradient(model))
    return torch.stack(found)


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("entropy", [0.0, 0.3])
def test_mean_of_the_estimator_is_the_exact_gradient(baseline, entropy):
    model, context, targets = tiny(baseline=baseline, entropy=entropy, expectation=0.0)
    exact, _ = exact_gradient(model, context, targets, entropy)
    found = estimates(model, context, targets)
    error = found.mean(0) - exact
    standard_error = found.std(0) / len(found) ** 0.5
    z = error / standard_error.clamp_min(1e-9)
    assert float(z.abs().max()) < 5, "an element is off by more than five standard errors"
    assert float(z.square().mean()) < 1.8  # about 1 if unbiased
    # and the sampling error is small against what is estimated, so that a wrong sign would show
    assert float(standard_error.norm() / exact.norm()) < 0.2


def test_the_reinforce_term_matters():
    """Without it the estimator is biased, and this test's yardstick sees that."""
    model, context, targets = tiny(baseline=False, entropy=0.0, expectation=0.0, reward=0.0)
    exact, _ = exact_gradient(model, context, targets)
    found = estimates(model, context, targets)
    z = (found.mean(0) - exact) / (found.std(0) / len(found) ** 0.5).clamp_min(1e-9)
    assert float(z.abs().max()) > 10


def test_the_baseline_lowers_the_variance():
    def total_variance(baseline):
        model, context, targets = tiny(baseline=baseline, entropy=0.0, expectation=0.0)
        estimates(model, context, targets, batches=10)  # lets the moving average settle
        return float(estimates(model, context, targets, batches=200).var(0).sum())

    assert total_variance(True) < 0.7 * total_variance(False)


def test_the_bound_is_below_the_marginal_likelihood():
    model, context, targets = tiny()
    _, bound = exact_gradient(model, context, targets)
    with torch.no_grad():
        likelihood, location, _ = path_terms(model, context, targets)
    marginal = float(torch.logsumexp(location + likelihood, 0))
    assert float(location.exp().sum()) == pytest.approx(1.0)
    assert bound < marginal


def test_expectation_rows_have_the_gradient_of_soft_attention():
    model, context, targets = tiny(expectation=1.0, entropy=0.0)
    found = estimates(model, context, targets, batches=2)
    model.zero_grad()
    model.eval()  # hard attention that is not training is soft
    decoded = model.decoder(targets[:, :-1], model.decoder.start(context))
    likelihood, _ = sequence_loss(model.decoder, decoded, targets[:, 1:], model.objective.config)
    (-likelihood.sum()).backward()
    torch.testing.assert_close(found[0], flat_gradient(model))


def test_half_the_examples_use_the_expectation():
    model, _, _ = tiny(expectation=0.5)
    rows = model.hard.expected_rows(torch.rand(4000))
    assert 0.46 < float(rows.float().mean()) < 0.54


def test_captions_and_samples_of_one_picture_share_the_draw():
    model, context, targets = tiny(samples=3, expectation=0.5)
    seen = []
    decode = model.decoder.forward
    model.decoder.forward = lambda before, state: (
        seen.append(state.expected), decode(before, state)
    )[1]  # fmt: skip
    pictures = ContextSet(context.values.repeat(40, 1, 1), context.mask.repeat(40, 1))
    model.loss(Batch(targets.repeat(200, 1), inputs_of(pictures)))  # five captions of each
    rows = seen[0].view(40, 5 * 3)
    assert bool((rows == rows[:, :1]).all())
    assert 0 < int(rows[:, 0].sum()) < 40


def test_the_baseline_is_the_moving_average_of_the_rewards():
    model, context, targets = tiny(expectation=0.0)
    expected = None
    for _ in range(5):
        loss, _ = model.loss(Batch(targets, inputs_of(context)))
        reward = loss.parts["reward"]
        expected = reward if expected is None else 0.9 * expected + 0.1 * reward
        assert float(model.hard.baseline) == pytest.approx(expected)


def test_rows_of_padding_have_no_reward():
    """A picture with fewer captions than others has rows without a word; b must not see them."""
    model, context, targets = tiny(expectation=0.0)
    torch.manual_seed(8)
    model.loss(Batch(targets.repeat(3, 1), inputs_of(context)))
    alone = float(model.hard.baseline)
    model, context, _ = tiny(expectation=0.0)
    torch.manual_seed(8)
    empty = torch.tensor([[1, 0, 0, 0]])
    loss, _ = model.loss(Batch(torch.cat([targets.repeat(3, 1), empty]), inputs_of(context)))
    assert float(model.hard.baseline) == pytest.approx(alone, rel=0.2)
    assert loss.parts["reward"] == pytest.approx(float(model.hard.baseline))
    assert (
        float(model.hard.baseline) < -3
    )  # an empty row's reward, 0, would pull it up by a quarter


@pytest.mark.parametrize("normalise", [False, True])
def test_normalising_divides_the_advantage_by_the_rewards_deviation(normalise):
    model, context, targets = tiny(expectation=0.0, entropy=0.0, normalise=normalise)
    seen = []
    terms = model.hard.terms
    model.hard.terms = lambda advantage, *rest: (seen.append(advantage), terms(advantage, *rest))[1]
    model.hard.baseline.fill_(-20.0)
    model.hard.variance.fill_(16.0)
    model.hard.started.fill_(True)
    loss, _ = model.loss(Batch(targets, inputs_of(context)))
    excess = loss.parts["reward"] + 20
    assert float(seen[0]) == pytest.approx(excess / 4 if normalise else excess)
    assert float(model.hard.variance) != 16


def test_describing_by_argmax_attends_to_one_place_in_every_step():
    model, context, targets = tiny()
    looks = model.decoder.config.attention
    model.eval()
    model.decoder.attention.config = replace(looks, describe="argmax")
    decoded = model.decoder(targets[:, :-1], model.decoder.start(context))
    assert bool((decoded.used.sort(-1).values == torch.tensor([0.0, 0.0, 1.0])).all())
    assert bool((decoded.used.argmax(-1) == decoded.weights.argmax(-1)).all())
    # the same as the path of largest weights, given
    chosen = decoded.weights.argmax(-1)
    given_path = model.decoder(targets[:, :-1], model.decoder.start(context), chosen)
    torch.testing.assert_close(decoded.readouts, given_path.readouts)
    # and step by step as a whole
    state = model.decoder.start(context)
    for t in range(T):
        logits, weights, state = model.decoder.step(targets[:, t], state)
        torch.testing.assert_close(logits, model.decoder.output(decoded.readouts[:, t]))
        torch.testing.assert_close(weights, decoded.used[:, t])
