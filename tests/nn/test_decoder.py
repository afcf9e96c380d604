"""The decoder: stepping equals teacher forcing, rows are independent, eq. 7 as written."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.vocabulary import BEGIN, PAD
from sightline.nn.decoder import Decoder, mean_value
from sightline.nn.losses import sequence_loss
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.types import ContextSet

V, D, M, B, T = 11, 5, 4, 3, 6

CONFIGS = {
    "xu": DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=5)),
    "two layers, gru": DecoderConfig(
        cell="gru", layers=2, embedding=6, hidden=7, attention=AttentionConfig(size=5)
    ),
    "location": DecoderConfig(
        embedding=6,
        hidden=7,
        attention=AttentionConfig(kind="location", size=5, width=3, cumulative=True),
    ),
    "show and tell": DecoderConfig(
        embedding=6, hidden=7, attention=AttentionConfig(kind="none"), context=("first",)
    ),
    "every step, vanilla": DecoderConfig(
        cell="rnn",
        embedding=6,
        hidden=7,
        attention=AttentionConfig(kind="none"),
        context=("every",),
        output="plain",
    ),
    "all ways in": DecoderConfig(
        layers=2,
        embedding=6,
        hidden=7,
        attention=AttentionConfig(size=5),
        context=("state", "first", "every"),
    ),
}


def setting(name, dtype=torch.float64):
    torch.manual_seed(0)
    decoder = Decoder(CONFIGS[name], V, D).to(dtype).eval()
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[1, 2:] = False
    context = ContextSet(torch.randn(B, M, D, dtype=dtype) * mask[..., None], mask)
    tokens = torch.randint(3, V, (B, T))
    tokens[:, 0] = BEGIN
    return decoder, context, tokens


def forced(decoder, context, tokens, per_example=1):
    decoded = decoder(tokens, decoder.start(context, per_example))
    return decoder.log_probs(decoded), decoded.weights


@pytest.mark.parametrize("name", CONFIGS)
def test_stepping_equals_teacher_forcing(name):
    decoder, context, tokens = setting(name)
    log_probs, weights = forced(decoder, context, tokens)
    state = decoder.start(context)
    for t in range(T):
        logits, step_weights, state = decoder.step(tokens[:, t], state)
        torch.testing.assert_close(torch.log_softmax(logits, -1), log_probs[:, t])
        if weights is not None:
            torch.testing.assert_close(step_weights, weights[:, t])


@pytest.mark.parametrize("name", CONFIGS)
def test_a_batch_equals_its_singles_whatever_the_padding(name):
    decoder, context, tokens = setting(name)
    log_probs, _ = forced(decoder, context, tokens)
    for i in range(B):
        real = int(context.mask[i].sum())
        alone = ContextSet(context.values[i : i + 1, :real], context.mask[i : i + 1, :real])
        torch.testing.assert_close(forced(decoder, alone, tokens[i : i + 1])[0][0], log_probs[i])


@pytest.mark.parametrize("name", CONFIGS)
def test_captions_that_share_a_picture_equal_captions_with_their_own(name):
    decoder, context, _ = setting(name)
    tokens = torch.randint(3, V, (2 * B, T))
    shared, _ = forced(decoder, context, tokens, per_example=2)
    own, _ = forced(decoder, context.select(torch.arange(B).repeat_interleave(2)), tokens)
    torch.testing.assert_close(shared, own)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    "rows", [[0, 0, 1, 1, 2, 2], [0, 2], [1, 1, 1], [2, 0], [0, 0, 2], [1, 0, 1]]
)
def test_select_takes_rows_in_any_shape(name, rows):
    """Grouped rows share contexts; irregular ones get their own; the outputs are the same."""
    decoder, context, tokens = setting(name)
    _, _, state = decoder.step(tokens[:, 0], decoder.start(context))
    logits, _, _ = decoder.step(tokens[:, 1], state)
    chosen = decoder.select(state, torch.tensor(rows))
    again, _, _ = decoder.step(tokens[rows, 1], chosen)
    torch.testing.assert_close(again, logits[rows])
    assert len(chosen) == len(rows)


def test_select_does_not_copy_the_context_of_a_beam():
    decoder, context, _ = setting("xu")
    state = decoder.start(context)
    wide = decoder.select(state, torch.arange(B).repeat_interleave(5))
    assert wide.context.keys.data_ptr() == state.context.keys.data_ptr()
    again = decoder.select(wide, torch.tensor([4, 4, 0, 1, 2, 5, 5, 5, 5, 5, 14, 13, 12, 11, 10]))
    assert again.context.values.data_ptr() == state.context.values.data_ptr()
    assert len(decoder.select(again, torch.arange(5, 15)).context) == 2  # a finished example left


def test_deep_output_and_gate_as_in_equation_7():
    """One step of Xu et al. by hand: init MLPs, β, the LSTM of eq. 1-3, and eq. 7."""
    decoder, context, tokens = setting("xu")
    w = {name: p.detach().numpy() for name, p in decoder.named_parameters()}

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def init(part, mean):
        inner = np.maximum(
            0, w[f"enter_state.{part}.0.weight"] @ mean + w[f"enter_state.{part}.0.bias"]
        )
        return np.tanh(w[f"enter_state.{part}.2.weight"] @ inner + w[f"enter_state.{part}.2.bias"])

    values = context.values[0].numpy()
    h, c = (init(part, values.mean(0)) for part in (0, 1))
    y = w["embed.weight"][int(tokens[0, 0])]
    e = np.array(
        [
            w["attention.score.weight"][0]
            @ np.tanh(
                w["attention.key.weight"] @ a
                + w["attention.key.bias"]
                + w["attention.query.weight"] @ h
            )
            for a in values
        ]
    )
    alpha = np.exp(e) / np.exp(e).sum()
    beta = sigmoid(w["gate.weight"] @ h + w["gate.bias"])
    z = beta * (alpha[:, None] * values).sum(0)
    gates = (
        w["recurrent.weight_ih_l0"] @ np.concatenate([y, z])
        + w["recurrent.bias_ih_l0"]
        + w["recurrent.weight_hh_l0"] @ h
        + w["recurrent.bias_hh_l0"]
    )
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    readout = y + w["from_hidden.weight"] @ h + w["from_hidden.bias"] + w["from_context.weight"] @ z
    logits = w["output.weight"] @ readout + w["output.bias"]
    ours, weights, _ = decoder.step(tokens[:, 0], decoder.start(context))
    np.testing.assert_allclose(weights[0].detach().numpy(), alpha, atol=1e-12)
    np.testing.assert_allclose(ours[0].detach().numpy(), logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["xu", "two layers, gru", "all ways in"])
def test_gradient_of_the_loss_by_finite_differences(name):
    decoder, context, tokens = setting(name)
    config = LossConfig(doubly_stochastic=0.7, label_smoothing=0.1)
    parameters = dict(decoder.named_parameters())

    def loss():
        decoded = decoder(tokens[:, :-1], decoder.start(context))
        return sequence_loss(decoder, decoded, tokens[:, 1:], config)[1].total

    loss().backward()
    generator = torch.Generator().manual_seed(0)
    for key, parameter in parameters.items():
        flat = parameter.data.view(-1)
        for index in torch.randint(len(flat), (3,), generator=generator).tolist():
            if key == "output.bias" and index in (PAD, BEGIN):
                continue
            kept = float(flat[index])
            with torch.no_grad():
                flat[index] = kept + 1e-6
                above = float(loss())
                flat[index] = kept - 1e-6
                below = float(loss())
                flat[index] = kept
            slope = (above - below) / 2e-6
            assert float(parameter.grad.view(-1)[index]) == pytest.approx(slope, abs=1e-6), key


def test_mean_value_leaves_the_padding_out():
    _, context, _ = setting("xu")
    torch.testing.assert_close(mean_value(context)[1], context.values[1, :2].mean(0))


def test_pad_and_begin_are_never_written():
    decoder, context, tokens = setting("xu")
    log_probs, _ = forced(decoder, context, tokens)
    assert float(log_probs[..., [PAD, BEGIN]].detach().exp().max()) == 0.0


@pytest.mark.parametrize("name", ["xu", "two layers, gru", "all ways in"])
def test_a_token_is_generated_without_dropout_in_training_too(name):
    _, context, tokens = setting(name)
    torch.manual_seed(0)
    config = replace(CONFIGS[name], dropout=0.5)
    decoder = Decoder(config, V, D).double().eval()
    state = decoder.start(context)
    expected, _, _ = decoder.step(tokens[:, 0], state)
    found, _, _ = decoder.train().step(tokens[:, 0], state)
    assert torch.equal(found, expected)


def test_a_preference_steers_teacher_forcing_as_it_steers_steps():
    decoder, context, tokens = setting("xu")
    steered = replace(context, bias=torch.tensor([[2.0, 0, 0, 0]] * B, dtype=torch.float64))
    log_probs, weights = forced(decoder, steered, tokens)
    assert bool((weights[:, 0, 0] > forced(decoder, context, tokens)[1][:, 0, 0]).all())
    state = decoder.start(steered)
    for t in range(T):
        logits, step_weights, state = decoder.step(tokens[:, t], state)
        torch.testing.assert_close(torch.log_softmax(logits, -1), log_probs[:, t])
        torch.testing.assert_close(step_weights, weights[:, t])


def test_torch_stepper_leaves_tokens_out_and_stays_normalised():
    torch.manual_seed(0)
    model = EncoderDecoder(None, Decoder(CONFIGS["show and tell"], V), Likelihood())
    stepper = TorchStepper(model).without([7])
    result = stepper.step(stepper.start(ContextSet.empty(2)), np.array([1, 1]))
    assert np.isneginf(result.log_probs[:, 7]).all()
    np.testing.assert_allclose(np.exp(result.log_probs).sum(1), 1, rtol=1e-5)


def test_a_picture_seen_once_is_not_gone_after_ten_words():
    """Two pictures, the same words: what told their states apart still does."""
    torch.manual_seed(0)
    config = DecoderConfig(attention=AttentionConfig(kind="none"), context=("first",))
    decoder = Decoder(config, 50, 32).eval()
    pictures = torch.randn(2, 1, 32) * 0.2  # as large as VGG's mean vectors differ
    state = decoder.start(ContextSet(pictures, torch.ones(2, 1, dtype=torch.bool)))
    words = torch.randint(3, 50, (1, 10)).expand(2, -1)

    def apart(state):
        cells = state.recurrent[1][0]  # (2, H)
        return (cells[0] - cells[1]).norm()

    assert apart(decoder(words, state).state) > 0.9 * apart(state)
