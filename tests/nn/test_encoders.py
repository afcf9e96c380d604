"""Encoders read Inputs: streams of any length with their masks, cached maps, or pixels."""

import numpy as np
import pytest
import torch

from given import given, vectors
from sightline.config import AttentionConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import BEGIN, END, PAD, UNKNOWN
from sightline.errors import ConfigError, DataError
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.image import build_encoder
from sightline.nn.encoders.picture import PictureEncoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchEncoder
from sightline.types import ContextSet, Inputs, Stream


def pixels(count=2, size=64):
    return torch.from_numpy(
        np.random.default_rng(0).normal(size=(count, 3, size, size)).astype(np.float32)
    )


def learner(learning):
    torch.manual_seed(0)
    return build_encoder("efficientnet_lite0", size=64, learning=learning)


def test_cached_maps_and_pixels_give_the_same_vectors():
    network = learner("upper").eval()
    encoder = PictureEncoder(network, "upper").eval()
    lower = network.below()(pixels())
    with torch.no_grad():
        of_pixels = encoder(Inputs(2, {"pictures": Stream(pixels())}))
        of_maps = encoder(Inputs(2, {"lower": Stream(lower)}))
        of_half = encoder(Inputs(2, {"lower": Stream(lower.half())}))
    assert of_pixels.values.shape == (2, 4, encoder.dimension)
    assert bool(of_pixels.mask.all())
    torch.testing.assert_close(of_maps.values, of_pixels.values, rtol=1e-4, atol=1e-5)
    assert of_half.values.dtype == torch.float32
    torch.testing.assert_close(of_half.values, of_pixels.values, rtol=0.05, atol=0.05)


def test_only_a_network_that_learns_is_part_of_the_weights():
    tuned, frozen = PictureEncoder(learner("tuned"), "tuned"), PictureEncoder(learner("frozen"))
    assert all(name.startswith("pictures.network.") for name in tuned.state_dict())
    assert len(tuned.state_dict()) > 0
    assert not frozen.state_dict()
    assert not list(frozen.parameters())
    inputs = Inputs(2, {"pictures": Stream(pixels())})
    with torch.no_grad():
        torch.testing.assert_close(frozen(inputs).values, tuned.eval()(inputs).values)
    frozen.train()
    assert not frozen.network.training  # its batch norm keeps its statistics


def test_a_frozen_network_moves_with_the_model():
    encoder = PictureEncoder(learner("frozen")).double()
    values = encoder(Inputs(2, {"pictures": Stream(pixels().double())})).values
    assert values.dtype == torch.float64
    assert not values.requires_grad


def test_vectors_need_no_network_and_pictures_do():
    values = torch.randn(2, 3, 4)
    context = given(4)(vectors(values))
    assert torch.equal(context.values, values)
    assert bool(context.mask.all())
    with pytest.raises(ConfigError, match="without its picture encoder"):
        given(4)(Inputs(2, {"pictures": Stream(pixels())}))


@pytest.mark.parametrize("kind", ["content", "location", "none"])
def test_a_ragged_batch_of_floats_equals_its_singles(kind):
    """Frames of sound or vectors of clips, of different lengths, in loss and gradient."""
    torch.manual_seed(0)
    config = DecoderConfig(
        embedding=4, hidden=5, attention=AttentionConfig(kind=kind, size=6, filters=2, width=3)
    )
    model = EncoderDecoder(given(3), Decoder(config, 9, 3), Likelihood())
    rng = np.random.default_rng(0)
    clips = [rng.normal(size=(length, 3)).astype(np.float32) for length in (5, 2, 7)]
    targets = pad([[BEGIN, 4, 5, END], [BEGIN, 8, END], [BEGIN, 6, 7, 4, END]])

    def run(some, rows):
        model.zero_grad()
        inputs = Inputs(len(some), {"vectors": Stream.ragged(some)})
        loss, _ = model.loss(Batch(targets[rows], inputs).to("cpu"))
        (loss.total * loss.tokens).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return loss.nats, torch.cat([g.flatten() for g in grads])

    nats, gradient = run(clips, slice(None))
    alone = [run([clip], slice(row, row + 1)) for row, clip in enumerate(clips)]
    assert nats == pytest.approx(sum(each[0] for each in alone), rel=1e-5)
    torch.testing.assert_close(gradient, sum(each[1] for each in alone), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("summary", [False, True])
def test_text_is_as_long_as_its_mask_says(summary):
    """Whatever the ids: <pad> inside the mask is read, what is outside it is not."""
    torch.manual_seed(0)
    config = RecurrentConfig(embedding=4, hidden=3, summary=summary)
    encoder = TextEncoder(config, 12)
    tokens = torch.tensor([[5, PAD, 6, 7], [8, 9, 10, 11]])
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    together = encoder(Inputs(2, {"tokens": Stream(tokens, mask)}))
    for row, length in enumerate((3, 2)):
        alone = encoder(Inputs(1, {"tokens": Stream(tokens[row : row + 1, :length])}))
        places = 1 if summary else length
        torch.testing.assert_close(together.values[row, :places], alone.values[0])
        assert int(together.mask[row].sum()) == places


@pytest.mark.parametrize("summary", [False, True])
def test_an_empty_example_is_an_error_that_names_it(summary):
    encoder = TextEncoder(RecurrentConfig(embedding=4, hidden=3, summary=summary), 12)
    decoder = Decoder(DecoderConfig(embedding=4, hidden=5), 9, encoder.dimension)
    model = EncoderDecoder(encoder, decoder, Likelihood())
    tokens = np.array([[5, 6], [PAD, PAD]])
    inputs = Inputs(2, {"tokens": Stream(tokens, tokens != PAD)})
    with pytest.raises(DataError, match="example 2 is empty"):
        TorchEncoder(model).encode(inputs)
    batch = Batch(pad([[BEGIN, UNKNOWN, END]] * 2), inputs, name="lines 3 and 4").to("cpu")
    with pytest.raises(DataError, match="example 2 of lines 3 and 4 is empty"):
        model.loss(batch)


def test_a_model_without_an_encoder_counts_its_examples():
    decoder = Decoder(DecoderConfig(embedding=4, hidden=5), 9)
    model = EncoderDecoder(None, decoder, Likelihood())
    context = model.encode(Inputs(3))
    assert isinstance(context.values, torch.Tensor)
    assert len(context) == 3
    assert len(decoder.start(context, per_example=2)) == 6
    loss, state = model.loss(Batch(pad([[BEGIN, 4, 5], [BEGIN, 6, END]]), Inputs(2)))
    assert loss.tokens == 4
    again, _ = model.loss(Batch(pad([[5, 6], [4, END]]), Inputs(2)), state.detach())
    assert again.tokens == 2


def test_an_encoder_is_run_in_evaluation_mode_on_half_precision():
    torch.manual_seed(0)
    config = DecoderConfig(embedding=4, hidden=5)
    model = EncoderDecoder(given(3), Decoder(config, 9, 3), Likelihood()).train()
    values = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float16)
    context = TorchEncoder(model).encode(vectors(values))
    assert isinstance(context, ContextSet)
    assert context.values.dtype == np.float32
    np.testing.assert_array_equal(context.values, values.astype(np.float32))
    assert context.mask.all()
    assert not model.training
