"""A picture encoder that learns with the decoder: what it computes, what changes, what is saved."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

torch = pytest.importorskip("torch", reason="the train extra is not installed")

import sightline  # noqa: E402
from sightline.config import BatchingConfig  # noqa: E402
from sightline.errors import CheckpointError, ConfigError  # noqa: E402
from sightline.media.preprocess import ImageSpec, preprocess  # noqa: E402
from sightline.nn.encoders.image import build_encoder  # noqa: E402
from sightline.runtime.model_folder import find_model  # noqa: E402
from sightline.tasks.caption.data import CaptionData  # noqa: E402
from sightline.training.checkpoint import load_weights  # noqa: E402
from sightline.training.loop import train  # noqa: E402

UPPER = [("efficientnet_lite0", 32), ("efficientnet_lite2", 32), ("resnet50", 32), ("vgg16", 16)]


@pytest.mark.parametrize(("name", "stride"), [*UPPER, ("vgg16", 32)])
def test_above_the_first_map_of_stride_16_is_the_rest_of_the_network(name, stride):
    torch.manual_seed(0)
    whole = build_encoder(name, stride=stride, learning="upper")
    images = torch.randn(2, 3, 96, 96)
    torch.testing.assert_close(whole.above(whole.below()(images)), whole(images))


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet50"])
def test_what_lies_below_is_the_network_of_stride_16(name):
    whole = build_encoder(name, stride=32, learning="upper")
    below = build_encoder(name, stride=16)
    below.network.load_state_dict(whole.network.state_dict(), strict=False)
    assert whole.below().fingerprint() == below.fingerprint()  # they share a cache


@pytest.mark.parametrize(("name", "stride"), [("efficientnet_lite0", 32), ("vgg16", 16)])
def test_upper_learns_exactly_what_lies_above(name, stride):
    encoder = build_encoder(name, stride=stride, learning="upper").train()
    below = encoder.below()
    encoder.above(below(torch.randn(2, 3, 64, 64))).sum().backward()
    touched = {n for n, p in encoder.network.named_parameters() if p.grad is not None}
    learns = {n for n, p in encoder.network.named_parameters() if p.requires_grad}
    everything, lower = (dict(e.network.named_parameters()) for e in (encoder, below))
    assert touched == learns == set(everything) - set(lower)
    if name == "vgg16":  # conv5's three convolutions
        assert {n.split(".")[1] for n in learns} == {"24", "26", "28"}


def test_upper_is_refused_where_nothing_could_learn():
    with pytest.raises(ConfigError, match="nothing lies above"):
        build_encoder("resnet50", stride=16, learning="upper")


def test_a_mirrored_picture_is_the_preprocessed_one_reversed():
    picture = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    spec = ImageSpec(32, "squeeze")
    seen = preprocess(picture, replace(spec, mirror=True))
    np.testing.assert_array_equal(seen, preprocess(picture, spec)[:, :, ::-1])
    assert "mirror" not in spec.to_json()  # caches made before there were mirrors stay good


def test_captions_together_have_the_loss_of_captions_apart(shapes):
    _, recipe, _ = shapes
    together = replace(recipe, captions_together=True, batching=BatchingConfig("similar_length", 8))
    task, apart = CaptionData(together), CaptionData(recipe)
    torch.manual_seed(0)
    model = task.build_model().eval()
    batch = task.epoch(0)[0]
    assert len(batch.targets) == 2 * len(batch.inputs)  # two captions each, one set of vectors
    total = model.loss(batch)[0].nats
    nats = 0.0
    for number, (picture, sequences) in enumerate(apart.examples):
        if apart.train[picture].id in batch.items:
            assert len(sequences) == 1
            epoch = replace(apart.epoch(0), batches=[np.array([number])])
            nats += model.loss(epoch[0])[0].nats
    assert total == pytest.approx(nats, rel=1e-4)


def test_a_picture_with_fewer_captions_adds_only_padding(shapes):
    _, recipe, _ = shapes
    task = CaptionData(replace(recipe, captions_together=True))
    task.examples[0] = (task.examples[0][0], task.examples[0][1][:1])
    torch.manual_seed(0)
    model = task.build_model().eval()
    epoch = task.epoch(0)
    (place,) = [place for place, members in enumerate(epoch.batches) if 0 in members]
    captions = [number for i in epoch.batches[place] for number in task.examples[i][1]]
    loss, _ = model.loss(epoch[place])
    assert loss.tokens == sum(len(task.captions[number][1]) - 1 for number in captions)


@pytest.mark.parametrize("learning", ["upper", "tuned"])
def test_it_begins_with_a_frozen_model_and_loads_whole(shapes, tmp_path, learning):
    folder, recipe, _ = shapes
    training = replace(
        recipe.training,
        steps=6,
        evaluate_every=6,
        initial=str(folder / "run"),
        optimiser=replace(recipe.training.optimiser, learning_rate=1e-4, encoder=0.5),
    )
    recipe = replace(
        recipe,
        encoder=replace(recipe.encoder, learning=learning, mirror=True),
        captions_together=True,
        batching=BatchingConfig("similar_length", 12),
        training=training,
    )
    task = CaptionData(recipe)
    outcome = train(task, tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["cider"] > 5
    model = sightline.load(tmp_path / "run")  # the encoder comes from the checkpoint
    name = task.dev[0].id
    published = build_encoder("efficientnet_lite2", weights="default", size=recipe.encoder.size)
    (inputs,) = model.reader.read(task.dev[0].media)
    vectors = model.encode(inputs).values
    assert np.abs(vectors - published.encode(inputs["pictures"].values)).max() > 1e-4
    trained = model.describe(task.dev[0].media)
    from_task = task.describer(_trained(task, tmp_path / "run")).describe(name)
    assert (name, trained.text) == (name, from_task.text)
    np.testing.assert_allclose(trained.attention, from_task.attention, atol=2e-3)

    taught = replace(
        recipe,
        encoder=replace(recipe.encoder, learning="frozen", weights=str(tmp_path / "run")),
        features=str(tmp_path / "features"),
        training=replace(training, initial=str(tmp_path / "run"), steps=1, evaluate_every=1),
    )
    with pytest.raises(ConfigError, match=r"encoder that learned.*add encoder\.weights="):
        CaptionData(replace(taught, encoder=replace(taught.encoder, weights="default")))
    frozen = CaptionData(taught)  # reads what the encoder that learned sees
    seen = frozen.pictures.inputs([name])["vectors"].values.astype(np.float32)
    np.testing.assert_allclose(seen, vectors, atol=0.02, rtol=0.01)
    train(frozen, tmp_path / "on", console=Console(quiet=True))
    assert sightline.load(tmp_path / "on").describe(task.dev[0].media).text
    with pytest.raises(CheckpointError, match="did not learn"):
        build_encoder("efficientnet_lite2", weights=tmp_path / "on")


def _trained(task, run):
    model = task.build_model()
    load_weights(model, find_model(run))
    return model.eval()
