"""Deep fusion: the equations by hand, a closed gate is the translator, and who learns."""

import numpy as np
import pytest
import torch

from given import GraphStepper, sentences
from sightline.config import AttentionConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import BEGIN
from sightline.nn.decoder import Decoder
from sightline.nn.deep_fusion import FusedDecoder, fuse
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchEncoder, TorchStepper

V, E = 30, 6
ENCODER = RecurrentConfig(embedding=5, hidden=4)
CONFIG = DecoderConfig(embedding=E, hidden=7, gate=False, attention=AttentionConfig(size=5))
PRIOR = {
    "lstm": DecoderConfig(embedding=8, hidden=9, attention=AttentionConfig(kind="none")),
    "two gru layers": DecoderConfig(
        cell="gru", layers=2, embedding=8, hidden=9, attention=AttentionConfig(kind="none")
    ),
}
SOURCES = pad([[5, 6, 7, 8, 2], [9, 2], [4, 4, 11, 2]])
TARGETS = pad([[BEGIN, 6, 7, 8, 2], [BEGIN, 9, 2], [BEGIN, 4, 5, 6, 7, 8, 2]])


def fused(prior="lstm", trained=True, **changes):
    """The fused model, the translator and the language model that it was made of."""
    torch.manual_seed(0)
    config = DecoderConfig(**{**vars(CONFIG), **changes})
    translator = EncoderDecoder(TextEncoder(ENCODER, V), Decoder(config, V, 8), Likelihood())
    language_model = EncoderDecoder(None, Decoder(PRIOR[prior], V), Likelihood())
    decoder = FusedDecoder(config, V, 8, PRIOR[prior])
    model = EncoderDecoder(TextEncoder(ENCODER, V), decoder, Likelihood())
    fuse(model, translator, language_model)
    if trained:
        torch.nn.init.normal_(decoder.from_prior.weight)
    return tuple(each.double().eval() for each in (model, translator, language_model))


def log_probs(model):
    state = model.decoder.start(model.encode(sentences(SOURCES)))
    return model.decoder.log_probs(model.decoder(TARGETS[:, :-1], state)).detach()


@pytest.mark.parametrize("prior", PRIOR)
def test_a_closed_gate_gives_exactly_the_translator(prior):
    model, translator, _ = fused(prior)
    assert (log_probs(model) - log_probs(translator)).abs().max() > 0.1
    with torch.no_grad():
        model.decoder.prior_gate.weight.zero_()
        model.decoder.prior_gate.bias.fill_(-1e9)
    assert torch.equal(log_probs(model), log_probs(translator))


def test_before_it_learns_it_is_the_translator():
    model, translator, _ = fused(trained=False)
    assert torch.equal(log_probs(model), log_probs(translator))


def test_one_step_by_hand():
    """g = σ(v · s + b); logits of the translator's readout plus L_s (g s)."""
    model, translator, language_model = fused()
    w = {name: p.detach().numpy() for name, p in model.decoder.named_parameters()}
    own = {name: p.detach().numpy() for name, p in language_model.decoder.named_parameters()}

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def heard(token, h, c):  # the language model's LSTM, with the language model's own weights
        gates = own["recurrent.weight_ih_l0"] @ own["embed.weight"][token]
        gates = gates + own["recurrent.bias_ih_l0"] + own["recurrent.bias_hh_l0"]
        i, f, g, o = np.split(gates + own["recurrent.weight_hh_l0"] @ h, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    mine, its = (m.decoder.start(m.encode(sentences(SOURCES))) for m in (model, translator))
    s, c = np.zeros(9), np.zeros(9)
    for token in (BEGIN, 6, 7):
        s, c = heard(token, s, c)
        tokens = torch.full((3,), token)
        readout, _, its = translator.decoder.advance(tokens, its)
        gate = sigmoid(w["prior_gate.weight"][0] @ s + w["prior_gate.bias"][0])
        told = w["from_prior.weight"] @ (gate * s)
        expected = w["output.weight"] @ (readout[0].detach().numpy() + told) + w["output.bias"]
        logits, _, mine = model.decoder.step(tokens, mine)
        np.testing.assert_allclose(logits[0].detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("tied", [False, True])
def test_gradients_reach_only_the_output_layer_and_what_is_new(tied):
    model, _, _ = fused(tied=tied)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model.train()
    model.loss(Batch(TARGETS, sentences(SOURCES)))[0].total.backward()
    optimiser.step()
    moved = {name for name, now in model.state_dict().items() if not torch.equal(now, before[name])}
    learns = {
        "output.weight", "output.bias", "from_hidden.weight", "from_hidden.bias",
        "from_context.weight", "from_prior.weight", "prior_gate.weight", "prior_gate.bias",
    }  # fmt: skip
    if tied:  # the matrix is the embedding's
        learns.remove("output.weight")
    assert moved == {f"decoder.{name}" for name in learns}


@pytest.mark.parametrize("prior", PRIOR)
def test_stepping_equals_teacher_forcing_and_rows_can_be_selected(prior):
    model, _, _ = fused(prior)
    whole = log_probs(model).numpy()
    stepper = TorchStepper(model)
    examples = np.array([0, 0, 1, 1, 2, 2])
    state = stepper.select(stepper.start(TorchEncoder(model).encode(sentences(SOURCES))), examples)
    for t in range(4):
        result = stepper.step(state, TARGETS[examples, t].numpy())
        np.testing.assert_allclose(result.log_probs, whole[examples, t], atol=1e-10)
        state = result.state
        if t == 1:  # the second example is finished
            state, examples = stepper.select(state, np.array([1, 0, 4, 5])), examples[[1, 0, 4, 5]]


def test_a_batch_equals_its_singles():
    model, _, _ = fused()
    together = log_probs(model)
    for row in range(3):
        length, size = int((TARGETS[row] != 0).sum()), int((SOURCES[row] != 0).sum())
        state = model.decoder.start(model.encode(sentences(SOURCES[row : row + 1, :size])))
        decoded = model.decoder(TARGETS[row : row + 1, : length - 1], state)
        alone = model.decoder.log_probs(decoded)[0]
        torch.testing.assert_close(alone, together[row, : length - 1])


def test_a_shortlist_hears_the_same_words():
    model, _, _ = fused()
    tokens = [0, 1, 2, 3, 6, 7, 20]
    small, whole = (
        TorchStepper(model.decoder.shortlisted(torch.tensor(tokens))),
        TorchStepper(model),
    )
    context = TorchEncoder(model).encode(sentences(SOURCES))
    mine, its = small.start(context), whole.start(context)
    for place in (1, 4, 5):
        ours = small.step(mine, np.full(3, place))
        theirs = whole.step(its, np.full(3, tokens[place]))
        kept = theirs.log_probs[:, tokens]
        kept = kept - np.log(np.exp(kept).sum(1, keepdims=True))
        np.testing.assert_allclose(ours.log_probs[:, 2:], kept[:, 2:], atol=1e-10)
        mine, its = ours.state, theirs.state


@pytest.mark.parametrize("prior", PRIOR)
def test_an_export_steps_the_same(prior):
    pytest.importorskip("onnx")
    from sightline.export.encoder_graphs import encoder_graph
    from sightline.export.graphs import start_graph, step_graph

    model = fused(prior)[0].float()
    ours = GraphStepper(
        step_graph(model.decoder, "int16"),
        start_graph(model.decoder, 8, "int16"),
        encoder_graph(model.encoder, "int16"),
    )
    theirs = TorchStepper(model)
    mine = ours.start(ours.encode(SOURCES))
    its = theirs.start(TorchEncoder(model).encode(sentences(SOURCES)))
    rows = np.array([0, 0, 1, 1, 2, 2])
    mine, its = ours.select(mine, rows), theirs.select(its, rows)
    for token in (BEGIN, 6, 7):
        tokens = np.arange(6) + token
        found, wanted = ours.step(mine, tokens), theirs.step(its, tokens)
        np.testing.assert_allclose(found.log_probs[:, 2:], wanted.log_probs[:, 2:], atol=2e-3)
        mine, its = found.state, wanted.state
