"""A captioner with tags, from its checkpoint and as an export: the same words, tags and focus."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sightline
from sightline.config import ImageEncoderConfig, SearchConfig
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import CheckpointError
from sightline.export.write import export
from sightline.figures.looks import tags_of
from sightline.tasks.caption.model import build_model, build_network, teach
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.training.checkpoint import load_weights
from small_models import SMALL, WORDS, pictures, save

pytest.importorskip("onnx")
CELLS = 9  # of a picture of 70 pixels
NOISE = torch.randn(4, 3, 70, 70, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """As trained, and in ONNX."""
    folder = tmp_path_factory.mktemp("tags")
    torch.manual_seed(0)
    encoder = ImageEncoderConfig("efficientnet_lite0", size=70, learning="scratch", tags=3)
    recipe = CaptionRecipe(
        manifest=str(folder / "pictures.jsonl"),
        encoder=encoder,
        model=replace(SMALL, head="copy"),
        search=SearchConfig(beam=3, max_length=8),
    )
    model = build_model(recipe, WORDS, build_network(recipe, published=False))
    with torch.no_grad():
        model.decoder.output.share.bias.fill_(1.0)  # copies a lot
        # what pictures have in common is taken away, so that tags differ from picture to picture
        words = model.encoder.tagger.words
        words.weight.mul_(40)
        words.bias.copy_(-words.weight @ model.encoder.network(NOISE).mean((0, 1)))
    save(folder / "model", recipe, model, vocab=WORDS)
    export(folder / "model", folder / "export")
    return sightline.load(folder / "model"), sightline.load(folder / "export")


def test_the_export_describes_as_the_model(models):
    model, ours = models
    seen = list(pictures(5))
    wanted, results = model.describe(seen, n_best=2), ours.describe(seen, n_best=2)
    assert len({description.layout.labels for description in wanted}) > 1
    for mine, its in zip(results, wanted, strict=True):
        assert mine.text == its.text
        assert mine.layout == its.layout
        assert mine.score == pytest.approx(its.score, abs=2e-2)
        np.testing.assert_allclose(mine.attention, its.attention, atol=1e-2)


def test_tags_follow_the_cells(models):
    result = models[1].describe(next(pictures(1)))
    assert result.layout.cells == CELLS
    assert len(result.layout) == CELLS + 3
    assert result.attention.shape == (len(result.tokens), CELLS + 3)
    np.testing.assert_allclose(result.attention.sum(1), 1, rtol=1e-4)
    assert {*result.layout.labels} <= {*WORDS.tokens}
    assert result.to_json()["layout"]["labels"] == list(result.layout.labels)
    for word in result.layout.labels:
        assert (f"[{word}]" in tags_of(result)) == (word in result.tokens)


def test_a_batch_equals_its_singles(models):
    seen = list(pictures(4))
    for model in models:
        for together, picture in zip(model.describe(seen), seen, strict=True):
            alone = model.describe(picture)
            assert (alone.text, alone.layout) == (together.text, together.layout)
            assert alone.score == pytest.approx(together.score, abs=1e-5)


def test_focus_steers_cells_and_leaves_tags_alone(models):
    picture = next(pictures(1))
    for model in models:
        result = model.describe(picture, focus=(0, 0, 0.34, 1))
        left = result.attention[:, :CELLS].reshape(-1, 3, 3)
        assert left[..., 0].sum() > 0.9 * left.sum()
        assert result.attention[:, CELLS:].sum() > 0


def test_without_tags_nothing_is_copied_or_looked_up(models):
    seen = list(pictures(3))
    for model in models:
        for with_tags, without in zip(
            model.describe(seen), model.describe(seen, tags=False), strict=True
        ):
            assert without.layout.labels == ()
            assert without.attention.shape[1] == CELLS
            np.testing.assert_allclose(without.attention.sum(1), 1, rtol=1e-4)
            assert without.score != with_tags.score
    texts = [[d.text for d in model.describe(seen, tags=False)] for model in models]
    assert texts[0] == texts[1]


def test_given_captions_and_streams_have_tags_too(models):
    picture = next(pictures(1))
    for model in models:
        (forced,) = model.force([picture], ["a dog sits"])
        assert len(forced.layout.labels) == 3
        *_, last = model.stream(picture)
        assert last.layout == model.describe(picture).layout
        assert last.text == model.describe(picture).text


def test_the_figure_lists_the_tags(models, tmp_path):
    picture = next(pictures(1))
    result = models[1].describe(picture)
    result.figure(tmp_path / "looked.svg", picture)
    assert "tags:" in (tmp_path / "looked.svg").read_text("utf-8")


def test_a_graph_that_names_tokens_beyond_the_vocabulary_is_refused(models, monkeypatch):
    model = models[1]
    encode = model.encoder.encode

    def wrong(inputs):
        context = encode(inputs)
        return replace(context, tokens=np.where(context.tokens > 0, len(WORDS), 0))

    monkeypatch.setattr(model.encoder, "encode", wrong)
    with pytest.raises(CheckpointError, match="tokens that do not exist"):
        model.describe(next(pictures(1)))


def test_training_adds_the_classifiers_words_to_the_vocabulary(tmp_path):
    extended = Vocabulary("word", WORDS.tokens).extended(["dog", "penguin", "piano"])
    assert extended.tokens == (*WORDS.tokens, "penguin", "piano")
    (tmp_path / VOCAB).write_text(extended.to_json())
    assert Vocabulary.load(tmp_path / VOCAB) == extended


def test_a_decoder_on_the_frozen_encoder_begins_with_the_runs_tagger(tmp_path):
    torch.manual_seed(0)
    encoder = ImageEncoderConfig("efficientnet_lite0", size=70, learning="scratch", tags=3)
    recipe = CaptionRecipe(manifest="x", encoder=encoder, model=replace(SMALL, head="copy"))
    learnt = build_model(recipe, WORDS, build_network(recipe, published=False))
    folder = save(tmp_path / "run", recipe, learnt, vocab=WORDS)
    frozen = replace(recipe, encoder=replace(encoder, learning="frozen", weights=str(folder)))
    model = build_model(frozen, WORDS, build_network(frozen))
    teach(model.encoder.tagger, frozen)
    torch.testing.assert_close(
        model.encoder.tagger.classes.weight, learnt.encoder.tagger.classes.weight
    )
    load_weights(model, folder, model.optional_weights)  # the network is outside its weights
    assert not any(name.startswith("encoder.pictures") for name in model.state_dict())
    torch.testing.assert_close(model.encoder.tagger.words.bias, learnt.encoder.tagger.words.bias)
