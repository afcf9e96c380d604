"""The losses against PyTorch's own and against plain loops."""

import pytest
import torch
from torch.nn import functional as F

from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.vocabulary import PAD
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.heads import draw_log_uniform, sampled_log_probs
from sightline.nn.kernels import likelihood
from sightline.nn.kernels.likelihood import chosen_and_normaliser
from sightline.nn.losses import doubly_stochastic, sequence_loss
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.types import ContextSet

V = 13


def language_model(**options):
    torch.manual_seed(0)
    config = DecoderConfig(
        embedding=6, hidden=7, attention=AttentionConfig(kind="none"), output="plain", **options
    )
    decoder = Decoder(config, V)
    decoder.output.bias.data.normal_()  # as if <pad> and <begin> could be written
    return decoder


TOKENS = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, PAD, PAD]])


@pytest.mark.parametrize("per", ["token", "sequence"])
def test_log_likelihood_equals_cross_entropy_without_the_padding(per):
    decoder = language_model()
    decoded = decoder(TOKENS[:, :-1], decoder.start(ContextSet.empty(2)))
    likelihood, loss = sequence_loss(decoder, decoded, TOKENS[:, 1:], LossConfig(per=per))
    logits = decoder.output(decoded.readouts)
    expected = F.cross_entropy(
        logits.flatten(0, 1), TOKENS[:, 1:].flatten(), ignore_index=PAD, reduction="sum"
    )
    assert loss.tokens == 6
    assert loss.nats == pytest.approx(float(expected.detach()), rel=1e-5)
    assert float(-likelihood.detach().sum()) == pytest.approx(loss.nats, rel=1e-5)
    divisor = 6 if per == "token" else 2
    assert float(loss.total.detach()) == pytest.approx(loss.nats / divisor, rel=1e-5)


@pytest.mark.parametrize("part", [likelihood.PART, 2 * V, 1], ids=["all rows", "two", "one"])
def test_the_likelihood_and_its_gradient_are_those_of_the_log_softmax(part, monkeypatch):
    monkeypatch.setattr(likelihood, "PART", part)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    torch.manual_seed(0)
    shapes = ((5, 4), (V, 4), (V,))
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    targets = torch.tensor([2, 7, 7, 12, 3])
    chosen, normaliser = chosen_and_normaliser(*given, targets)
    scores = F.linear(*given)
    expected = scores[torch.arange(5), targets], scores.logsumexp(1)
    d_chosen, d_normaliser = torch.randn(2, 5, dtype=torch.float64)
    found = []
    for pair in ((chosen, normaliser), expected):
        total = pair[0] @ d_chosen + pair[1] @ d_normaliser
        found.append([*pair, *torch.autograd.grad(total, given)])
    torch.testing.assert_close(*found)


def test_the_gradient_of_a_likelihood_is_taken_once_only():
    given = [torch.randn(shape, requires_grad=True) for shape in ((2, 4), (V, 4), (V,))]
    chosen, _ = chosen_and_normaliser(*given, torch.tensor([3, 4]))
    chosen.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once only"):
        chosen.sum().backward()


def test_label_smoothing_equals_torch_over_the_tokens_that_can_be_written():
    decoder = language_model()
    with torch.no_grad():
        decoder.output.bias[:2] = -1e4
    decoded = decoder(TOKENS[:, :-1], decoder.start(ContextSet.empty(2)))
    _, loss = sequence_loss(decoder, decoded, TOKENS[:, 1:], LossConfig(label_smoothing=0.2))
    real = TOKENS[:, 1:] != PAD
    logits = decoder.output(decoded.readouts)[real][:, 2:]
    expected = F.cross_entropy(logits, TOKENS[:, 1:][real] - 2, label_smoothing=0.2)
    torch.testing.assert_close(loss.total, expected)


def test_doubly_stochastic_penalty_as_in_equation_14():
    torch.manual_seed(0)
    weights = torch.softmax(torch.randn(2, 4, 3), -1)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    for row, steps in ((0, 4), (1, 2)):
        expected = sum(
            (1 - sum(float(weights[row, t, i]) for t in range(steps))) ** 2 for i in range(3)
        )
        assert float(doubly_stochastic(weights, mask)[row]) == pytest.approx(expected, rel=1e-5)


def test_sampled_softmax_over_everything_is_the_full_softmax():
    torch.manual_seed(0)
    output = torch.nn.Linear(8, V)
    output.bias.data[:2] = -1e4  # specials are never sampled
    readouts, targets = torch.randn(12, 8), torch.randint(2, V, (12,))
    targets[:2] = torch.tensor([2, 3])  # <end> and <unk> are in the batch
    full = torch.log_softmax(output(readouts), -1).gather(-1, targets[..., None]).squeeze(-1)
    sampled = sampled_log_probs(output.weight, output.bias, readouts, targets, negatives=200_000)
    torch.testing.assert_close(sampled, full, atol=1e-4, rtol=1e-4)


def test_sampled_softmax_estimates_the_partition_function():
    """Its mean over draws of Σ exp(corrected logit) is the full sum."""
    torch.manual_seed(0)
    size = 500
    logits = torch.randn(size, dtype=torch.float64)
    logits[:4] = -torch.inf
    estimates = []
    for _ in range(3000):
        tokens, log_expected = draw_log_uniform(size, 50, torch.device("cpu"))
        assert len(tokens.unique()) == len(tokens)
        estimates.append(float((logits[tokens] - log_expected).exp().sum()))
    mean = torch.tensor(estimates)
    error = float(mean.std() / len(mean) ** 0.5)
    assert abs(float(mean.mean()) - float(logits.exp().sum())) < 4 * error


def test_label_smoothing_with_a_sampled_softmax_is_refused():
    smooth = Likelihood(LossConfig(label_smoothing=0.1))
    with pytest.raises(ConfigError, match=r"loss.label_smoothing .* model.sampled_softmax"):
        EncoderDecoder(None, language_model(sampled_softmax=3), smooth)


def test_sampled_softmax_is_used_in_training_only():
    decoder = language_model(sampled_softmax=3)
    decoded = decoder.train()(TOKENS[:, :-1], decoder.start(ContextSet.empty(2)))
    training = sequence_loss(decoder, decoded, TOKENS[:, 1:], LossConfig())[1].nats
    decoder.eval()
    full = sequence_loss(decoder, decoded, TOKENS[:, 1:], LossConfig())[1].nats
    assert training < full  # fewer candidates, a smaller partition function
