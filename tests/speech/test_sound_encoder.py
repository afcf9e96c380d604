"""The sound encoder, CTC and augmentation against independent computations."""

import itertools
import math

import numpy as np
import onnxruntime
import pytest
import torch

from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    LossConfig,
    SoundAugmentConfig,
    SoundEncoderConfig,
)
from sightline.data.augment import masked, stretched
from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.errors import ConfigError
from sightline.nn.ctc import WithCtc, ctc_loss
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.sound import SoundEncoder, put_together
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.types import ContextSet, Inputs, Stream

ENCODERS = {
    "pyramid": SoundEncoderConfig(hidden=5, together=(2, 2, 1)),
    "three at once": SoundEncoderConfig(cell="lstm", hidden=4, together=(3,)),
    "one way": SoundEncoderConfig(cell="rnn", hidden=6, together=(1, 2), bidirectional=False),
    "one vector": SoundEncoderConfig(hidden=5, together=(2, 1), summary=True),
}


def sounds(lengths, features=3):
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(length, features)).astype(np.float32) for length in lengths]
    return [Inputs(1, {"sound": Stream.ragged([row])}) for row in rows]


def test_neighbours_are_put_together():
    hidden = torch.arange(10.0).view(1, 5, 2)
    mask = torch.tensor([[True, True, True, False, False]])
    joined, kept = put_together(hidden, mask, 2)
    assert joined.tolist() == [[[0, 1, 2, 3], [4, 5, 0, 0], [0, 0, 0, 0]]]
    assert kept.tolist() == [[True, True, False]]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_batch_equals_its_singles(name):
    torch.manual_seed(0)
    encoder = SoundEncoder(ENCODERS[name], 3).eval()
    examples = sounds([7, 12, 1, 9])
    together = encoder(Inputs.batch(examples).map(torch.from_numpy))
    for row, example in enumerate(examples):
        alone = encoder(example.map(torch.from_numpy))
        size = alone.values.shape[1]
        assert together.mask[row].sum() == size
        torch.testing.assert_close(together.values[row, :size], alone.values[0])
        assert not together.values[row, size:].any()


@pytest.mark.parametrize("name", ENCODERS)
def test_the_export_equals_the_encoder(name):
    pytest.importorskip("onnx")
    from sightline.export.encoder_graphs import encoder_graph
    from sightline.runtime.graph_check import check_graph

    torch.manual_seed(1)
    encoder = SoundEncoder(ENCODERS[name], 3, classes=4).eval()
    content = encoder_graph(encoder, "int16").SerializeToString()
    check_graph(content)
    session = onnxruntime.InferenceSession(content)
    for lengths in ([5, 8, 2], [1], [30, 29]):
        batch = Inputs.batch(sounds(lengths))
        given = {"sound": batch["sound"].values, "sound_mask": batch["sound"].mask}
        values, mask = session.run(["values", "mask"], given)
        with torch.inference_mode():
            expected = encoder(batch.map(torch.from_numpy))
        np.testing.assert_array_equal(mask > 0, expected.mask.numpy())
        np.testing.assert_allclose(values, expected.values.numpy(), atol=2e-3)


def test_ctc_is_the_sum_over_all_paths():
    torch.manual_seed(2)
    logits = torch.randn(1, 5, 6)
    target = [4, 5, 4]
    context = ContextSet(torch.zeros(1, 5, 1), torch.ones(1, 5, dtype=torch.bool))
    probabilities = logits[0].softmax(-1)
    total = 0.0
    for path in itertools.product(range(6), repeat=5):
        collapsed = [token for token, _ in itertools.groupby(path) if token != PAD]
        if collapsed == target:
            total += math.prod(float(probabilities[t, token]) for t, token in enumerate(path))
    loss = ctc_loss(logits, context, pad([[BEGIN, *target, END]]))
    assert float(loss) == pytest.approx(-math.log(total), rel=1e-5)


def test_ctc_of_padded_rows_is_that_of_each():
    torch.manual_seed(3)
    logits = torch.randn(2, 6, 7)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    rows = [[BEGIN, 4, 5, END], [BEGIN, 6, END]]
    both = ctc_loss(logits, ContextSet(logits, mask), pad(rows))
    alone = sum(
        ctc_loss(logits[i : i + 1, :n], ContextSet(logits, mask[i : i + 1, :n]), pad([rows[i]]))
        for i, n in enumerate((6, 4))
    )
    torch.testing.assert_close(both, alone)


def test_ctc_counts_as_its_weight_says_and_only_in_training():
    torch.manual_seed(4)
    decoder = DecoderConfig(embedding=4, hidden=6, attention=AttentionConfig(size=5), gate=False)
    encoder = SoundEncoder(SoundEncoderConfig(hidden=3, together=(1,)), 3, classes=8)
    totals = {}
    for weight in (0.0, 0.5, 2.0):
        torch.manual_seed(5)
        objective = WithCtc(LossConfig(ctc=weight))
        model = EncoderDecoder(encoder, Decoder(decoder, 8, encoder.dimension), objective)
        inputs = Inputs.batch(sounds([6, 8])).map(torch.from_numpy)
        batch = Batch(pad([[BEGIN, 4, END], [BEGIN, 5, 6, END]]), inputs)
        loss, _ = model.train().loss(batch)
        totals[weight] = float(loss.total.detach()), loss.parts["ctc"]
        assert "ctc" not in model.eval().loss(batch)[0].parts
    plain = totals[0.0][0]
    for weight, (total, ctc) in totals.items():
        assert total == pytest.approx(plain + weight * ctc, rel=1e-5)


def test_ctc_without_attention_is_refused():
    config = DecoderConfig(embedding=4, hidden=4, attention=AttentionConfig(kind="none"))
    with pytest.raises(ConfigError, match=r"loss\.ctc"):
        WithCtc(LossConfig(ctc=0.5)).check(Decoder(config, 8, 4))


# ---------------------------------------------------------------- augmentation


def test_masks_are_of_the_sizes_that_were_asked_for():
    config = SoundAugmentConfig(time_masks=1, longest_mask=10, band_masks=1, widest_mask=5)
    for seed in range(20):
        ones = np.ones((200, 123), np.float32)
        changed = masked(ones, 40, config, np.random.default_rng(seed))
        silent = (changed == 0).all(1).sum()
        bands = (changed == 0).all(0).reshape(3, 41)
        assert silent <= 10
        assert (bands == bands[0]).all()  # the same of a band and its differences
        assert bands[0].sum() <= 5
        assert not bands[0][0]  # never the energy
        assert ones.all()  # what was given is not changed


def test_speed_and_tract_move_what_they_should():
    static = np.zeros((100, 41), np.float32)
    static[50, 1 + 20] = 1.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        fast = stretched(static, SoundAugmentConfig(speed=0.3), rng)
        assert 75 < len(fast) < 145
        assert fast.max(0).argmax() == 21
        assert fast.max(1).argmax() == pytest.approx(50 * len(fast) / 100, abs=1.5)
        rng = np.random.default_rng(seed)
        small = stretched(static, SoundAugmentConfig(tract=0.2), rng)
        assert small.shape == static.shape
        if small.any():
            assert small.max(1).argmax() == 50
            assert 14 < small[50, 1:].argmax() < 27


def test_no_augmentation_changes_nothing():
    static = np.random.default_rng(0).normal(size=(30, 41)).astype(np.float32)
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(stretched(static, SoundAugmentConfig(), rng), static)
    frames = np.ones((30, 123), np.float32)
    np.testing.assert_array_equal(masked(frames, 40, SoundAugmentConfig(), rng), frames)


def test_of_some_batches_only_ctc_is_learned():
    torch.manual_seed(4)
    decoder = DecoderConfig(embedding=4, hidden=6, attention=AttentionConfig(size=5), gate=False)
    encoder = SoundEncoder(SoundEncoderConfig(hidden=3, together=(1,)), 3, classes=8)
    inputs = Inputs.batch(sounds([6, 8])).map(torch.from_numpy)
    batch = Batch(pad([[BEGIN, 4, END], [BEGIN, 5, 6, END]]), inputs)

    def losses(share):
        objective = WithCtc(LossConfig(ctc=0.5, ctc_alone=share))
        model = EncoderDecoder(encoder, Decoder(decoder, 8, encoder.dimension), objective).train()
        return model, [model.loss(batch)[0] for _ in range(40)]

    assert all(loss.total.item() > 0.5 * loss.parts["ctc"] for loss in losses(0.0)[1])
    model, alone = losses(1.0)
    alone[0].total.backward()
    assert all(loss.total.item() == pytest.approx(0.5 * loss.parts["ctc"]) for loss in alone)
    assert all(p.grad is None for p in model.decoder.parameters())
    assert all(p.grad is not None for p in model.encoder.parameters())
    mixed = [loss.total.item() > 0.5001 * loss.parts["ctc"] for loss in losses(0.5)[1]]
    assert 8 < sum(mixed) < 32
