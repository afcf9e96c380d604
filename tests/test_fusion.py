"""Language models made for a translator: in its own tokens, fused shallowly and deeply."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import load_file

import sightline
from sightline.config import AttentionConfig, BatchingConfig, DecoderConfig, RecurrentConfig
from sightline.data.vocabulary import BEGIN, END
from sightline.errors import ConfigError, UserError
from sightline.runtime.model_folder import find_model
from sightline.tasks import read_recipe
from sightline.tasks.language_model.data import TextData
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.parts import TranslationCodec, fused, target_of
from sightline.tasks.translate.recipe import FusionConfig
from sightline.training.loop import train
from sightline.training.merging import average_checkpoints
from toy_language import recipe, sentences

QUIET = Console(quiet=True)
SMALL = {
    "encoder": RecurrentConfig(embedding=8, hidden=8),
    "model": DecoderConfig(
        embedding=8, hidden=10, gate=False, attention=AttentionConfig(size=8)
    ),
}  # fmt: skip


def written(words):
    """As people write: no blank before a full stop."""
    return " ".join(words).replace(" .", ".")


def language_model(folder, **changes):
    settings = recipe("", steps=3).training
    model = DecoderConfig(
        embedding=8, hidden=12, attention=AttentionConfig(kind="none"), context=(), output="plain"
    )
    return LanguageModelRecipe(
        **{
            "text": str(folder / "more.txt"),
            "sequence": "line",
            "batching": BatchingConfig("token_budget", 500),
            "model": model,
            "sample": "",
            "sample_length": 5,
            "training": replace(settings, select="loss"),
            "like": str(folder / "run"),
            **changes,
        }
    )


@pytest.fixture(scope="module", params=["word", "bpe"])
def folder(request, tmp_path_factory):
    """A translator in `run` and a language model like it in `lm`, hardly trained."""
    folder = tmp_path_factory.mktemp(request.param)
    lines = []
    for split, count, seed in (("train", 80, 0), ("dev", 4, 1)):
        for number, (source, target, _) in enumerate(sentences(count, seed)):
            line = {"id": f"{split}{number}", "split": split, "source": written(source)}
            lines.append(json.dumps({**line, "targets": [written(target)]}))
    (folder / "toy.jsonl").write_text("\n".join(lines))
    more = [written(target) for _, target, _ in sentences(80, 5)]
    (folder / "more.txt").write_text("\n".join([*more[:40], "", " ", *more[40:]]))
    settings = recipe(folder / "toy.jsonl", kind=request.param, steps=3, **SMALL)
    train(TranslationData(settings), folder / "run", console=QUIET)
    train(TextData(language_model(folder)), folder / "lm", console=QUIET)
    return folder


@pytest.fixture(scope="module")
def models(folder):
    return sightline.load(folder / "run"), sightline.load(folder / "lm")


def fusion(folder, **changes):
    both = {"translator": str(folder / "run"), "language_model": str(folder / "lm"), **changes}
    kind = sightline.load(folder / "run").codec.vocab.kind
    return recipe(folder / "toy.jsonl", kind=kind, steps=4, **SMALL, fusion=FusionConfig(**both))


@pytest.fixture(scope="module")
def deep(folder):
    train(TranslationData(fusion(folder)), folder / "deep", console=QUIET)
    return sightline.load(folder / "deep")


# ---------------------------------------------------------------------------- the same tokens


def test_a_language_model_like_a_translator_has_its_tokens(models):
    translator, prior = models
    target = target_of(translator)
    assert prior.codec.vocab == target.vocab
    assert (prior.recipe.unit, prior.recipe.vocabulary) == (target.vocab.kind, len(target.vocab))
    texts = ["ka hundo um mjau vidat.", "um arbo, «ka» knab\x07 amat¡"]
    expected = [[BEGIN, *target.ids(target.split(text)), END] for text in texts]
    assert prior.codec.lines("\n".join([texts[0], "", "\x07", texts[1]])) == expected
    ids = expected[0][1:-1]
    assert prior.codec.prefix(texts[0]) == ids
    assert prior.codec.text([target.vocab.tokens[token] for token in ids]) == texts[0]


def test_shallow_fusion_needs_no_token_map(models):
    translator, prior = models
    both = fused(translator, prior, 0.3)
    assert both.prior.ids is None
    source, target = "the red dog sees a cat.", "ka hundo pira um mjau vidat."
    (together,), (own,) = (t.force([source], [target]) for t in (both, translator))
    (scored,) = prior.force([""], [target])
    expected = np.array(own.log_probs) + 0.3 * np.array(scored.log_probs)
    np.testing.assert_allclose(together.log_probs, expected, atol=1e-4)
    lexicon = {"dog": {"hundo": 1.0}}
    codec = TranslationCodec(target_of(translator), translator.recipe, True, lexicon)
    both = replace(both, codec=codec)
    plain = both.describe(source)
    short = both.describe(source, shortlist=10_000)
    assert short.tokens == plain.tokens
    np.testing.assert_allclose(short.log_probs, plain.log_probs, atol=1e-4)


def test_what_a_language_model_cannot_be_like(folder, tmp_path):
    for changes, message in (
        ({"sequence": "stream"}, "set sequence=line"),
        ({"like": str(folder / "lm")}, "is a model of the task language_model"),
        ({"like": str(tmp_path / "absent")}, "no model at"),
    ):
        with pytest.raises(UserError, match=message):
            TextData(language_model(folder, **changes))


# ---------------------------------------------------------------------------- deep fusion


def weights(folder):
    return load_file(find_model(folder) / "weights.safetensors")


def test_deep_fusion_trains_only_the_output_and_the_gate(folder, deep):
    own, translator, prior = (weights(folder / name) for name in ("deep", "run", "lm"))
    learnt = {
        name.removeprefix("decoder.")
        for name, values in own.items()
        if name in translator and not np.array_equal(values, translator[name])
    }
    assert learnt == {
        "output.weight", "output.bias", "from_hidden.weight", "from_hidden.bias",
        "from_context.weight",
    }  # fmt: skip
    for name in own:
        if name.startswith("decoder.prior."):
            np.testing.assert_array_equal(own[name], prior[name.replace("prior.", "")])
    assert np.abs(own["decoder.from_prior.weight"]).max() > 0
    assert own["decoder.prior_gate.bias"] != -1


def test_a_fused_model_stands_alone_and_a_batch_equals_its_singles(folder, deep, tmp_path):
    average_checkpoints(folder / "deep", tmp_path / "mean", newest=1)
    for name in (folder / "run", folder / "lm"):
        settings = (tmp_path / "mean" / "config.yaml").read_text()
        (tmp_path / "mean" / "config.yaml").write_text(settings.replace(str(name), "gone"))
    model = sightline.load(tmp_path / "mean")
    texts = ["the red dog sees a cat.", "a bird eats the stone near Eva.", "every boy"]
    for text, mine in zip(texts, model.describe(texts), strict=True):
        alone = model.describe(text)
        assert mine.tokens == alone.tokens
        np.testing.assert_allclose(mine.log_probs, alone.log_probs, atol=1e-4)
    (tmp_path / "mean" / "language_model.yaml").unlink()
    with pytest.raises(UserError, match="not a whole fused model"):
        sightline.load(tmp_path / "mean")


def test_a_fused_model_can_be_exported(folder, deep, tmp_path):
    pytest.importorskip("onnx")
    from sightline.export.write import export

    export(folder / "deep", tmp_path / "export")
    assert str(folder) not in (tmp_path / "export" / "config.yaml").read_text()
    exported = sightline.load(tmp_path / "export")
    source, target = "the red dog sees a cat.", "ka hundo pira um mjau vidat."
    (ours,), (theirs,) = (t.force([source], [target]) for t in (exported, deep))
    np.testing.assert_allclose(ours.log_probs, theirs.log_probs, atol=2e-3)


def test_models_that_do_not_fit_together_are_refused(folder, deep, tmp_path):
    other = language_model(folder, like=None, unit="word", vocabulary=20)
    train(TextData(other), tmp_path / "other", console=QUIET)
    for changes, message in (
        ({"language_model": str(tmp_path / "other")}, r"train one with like=.*run sequence=line"),
        ({"translator": str(folder / "lm")}, "is a model of the task language_model"),
        ({"language_model": str(folder / "run")}, "is a model of the task translate"),
        ({"translator": str(folder / "deep")}, "is a fused model already"),
    ):
        with pytest.raises(ConfigError, match=message):
            TranslationData(fusion(folder, **changes))
    wider = replace(fusion(folder), model=replace(SMALL["model"], hidden=11))
    with pytest.raises(UserError, match="is of another model"):
        TranslationData(wider).build_model()


def test_the_shipped_recipes_train_on_tiny_data(folder, tmp_path):
    from sightline.commands.recipes import SHIPPED

    tiny = ["training.steps=2", "training.evaluate_every=2", "training.tensorboard=false"]
    text = [f"{key}={folder / 'more.txt'}" for key in ("text", "held_out_text")]
    small = ["model.hidden=6", "model.embedding=6", f"like={folder / 'run'}"]
    settings = read_recipe(SHIPPED / "multi30k-de-lm.yaml", [*text, *small, *tiny])
    train(TextData(settings), tmp_path / "lm", console=QUIET)
    shutil.copy(folder / "toy.jsonl", tmp_path)
    given = [
        f"manifest={tmp_path / 'toy.jsonl'}", f"fusion.translator={folder / 'run'}",
        f"fusion.language_model={tmp_path / 'lm'}", "encoder.embedding=8", "encoder.hidden=8",
        "model.embedding=8", "model.hidden=10", "model.attention.size=8", "model.tied=false",
        "search.beam=2",
        f"model.cell={sightline.load(folder / 'run').recipe.model.cell}",
    ]  # fmt: skip
    settings = read_recipe(SHIPPED / "multi30k-en-de-fusion.yaml", [*given, *tiny])
    assert train(TranslationData(settings), tmp_path / "deep", console=QUIET).progress.step == 2
