"""Translation end to end: a toy language, training, translating, aligning, and the commands."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import sightline
from sightline.commands.average import average as average_command
from sightline.config import AttentionConfig, BatchingConfig, RecurrentConfig, VocabularyConfig
from sightline.errors import DataError, UserError
from sightline.figures.lengths import draw_quality_by_length, quality_by_length
from sightline.metrics import score
from sightline.metrics.alignment import GoldAlignment
from sightline.runtime import batches
from sightline.tasks import read_recipe
from sightline.tasks.language_model.data import TextData
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.translate.alignments import (
    align,
    alignment_of,
    error_rates,
    learn_lexicon,
    load_lexicon,
    save_lexicon,
)
from sightline.tasks.translate.commands import align as align_command
from sightline.tasks.translate.commands import translate as translate_command
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.parts import TranslationCodec, ensemble, fused, target_of
from sightline.training.loop import train
from sightline.training.merging import average_checkpoints
from toy_language import NAMES, NUMBERS, recipe, sentences, train_toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    train_toy(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder):
    return sightline.load(folder / "run")


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe")
    train_toy(folder, kind="bpe", steps=280)
    return sightline.load(folder / "run")


def held_out(count=40, seed=2):
    """Sentences that were neither trained on nor chosen by, with their true alignments."""
    seen = {" ".join(s) for s, _, _ in [*sentences(1500, 0), *sentences(60, 1)]}
    drawn = [(" ".join(s), " ".join(t), links) for s, t, links in sentences(2 * count, seed)]
    return [pair for pair in drawn if pair[0] not in seen][:count]


def bleu(translator, pairs):
    described = translator.describe([source for source, _, _ in pairs])
    hypotheses = {n: d.text for n, d in enumerate(described)}
    references = {n: [target] for n, (_, target, _) in enumerate(pairs)}
    return score(hypotheses, references, ["sacrebleu"], intervals=False)["corpus"]["sacrebleu"]


# ---------------------------------------------------------------------------- learning


def test_it_learns_words_and_their_order(translator):
    assert bleu(translator, held_out()) > 90


def test_it_learns_with_byte_pair_pieces(bpe):
    assert bleu(bpe, held_out()) > 85


def test_the_simple_encoder_decoder_is_only_configuration(folder, tmp_path):
    base = recipe(folder / "toy.jsonl", steps=30)
    simple = replace(
        base,
        encoder=RecurrentConfig(embedding=16, hidden=32, summary=True),
        model=replace(
            base.model, attention=AttentionConfig(kind="none"), context=("state", "every")
        ),
    )
    train(TranslationData(simple), tmp_path / "run", console=Console(quiet=True))
    model = sightline.load(tmp_path / "run")
    description = model.describe("the dog sees a cat .")
    assert description.attention is None
    assert description.layout is None
    with pytest.raises(UserError, match="no attention"):
        align(model, ["the dog"], ["ka hundo"])


def test_attention_that_remembers_where_it_looked_is_only_configuration(folder, tmp_path):
    base = recipe(folder / "toy.jsonl", steps=40)
    attention = AttentionConfig(kind="location", size=32, filters=4, width=3, cumulative=True)
    covered = replace(base, model=replace(base.model, attention=attention))
    outcome = train(TranslationData(covered), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["loss"] < 2.5  # ln 90 = 4.5 before training
    texts = ["the dog sees a cat .", "every old bird likes the big river near Eva at 17 !"]
    model = sightline.load(tmp_path / "run")
    for mine, text in zip(model.describe(texts), texts, strict=True):
        assert mine.text == model.describe(text).text


def test_sampled_softmax_trains_too(folder, tmp_path):
    base = recipe(folder / "toy.jsonl", steps=60)
    sampled = replace(base, model=replace(base.model, sampled_softmax=20))
    outcome = train(TranslationData(sampled), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["loss"] < 2.5  # ln 80 = 4.4 before training


# ---------------------------------------------------------------------------- translating


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_batch_equals_its_singles_and_order_is_kept(translator, bpe, kind):
    translator = {"word": translator, "bpe": bpe}[kind]
    texts = [source for source, _, _ in held_out(12)]
    texts = [texts[0], "", *texts[1:], "   ", "the dog"]
    together = translator.describe(texts, n_best=2)
    assert len(together) == len(texts)
    for text, mine in zip(texts, together, strict=True):
        alone = translator.describe(text, n_best=2)
        assert alone.text == mine.text
        assert [other.text for other in alone.alternatives] == [
            other.text for other in mine.alternatives
        ]
        assert (mine.text == "") == (text.strip() == "")
        if mine.attention is not None:
            np.testing.assert_allclose(alone.attention, mine.attention, atol=1e-4)


def test_a_description_says_where_it_looked(translator, tmp_path):
    description = translator.describe("the red dog sees a cat .", n_best=3)
    labels = ("the", "red", "dog", "sees", "a", "cat", ".", "<end>")
    assert description.layout.labels == labels
    assert description.attention.shape == (len(description.tokens), len(labels))
    np.testing.assert_allclose(description.attention.sum(1), 1, rtol=1e-4)
    assert len(description.alternatives) == 2
    json.dumps(description.to_json())
    description.figure(tmp_path / "tokens.png")
    alignment_of(translator, description).figure(tmp_path / "words.svg")
    assert "hundo" in (tmp_path / "words.svg").read_text()


@pytest.mark.parametrize("text", ["مرحبا بالعالم", "你好，世界", "\x00\x07", "a\u2028b", "\ud800"])
def test_strange_text_gives_one_line(translator, bpe, text):
    for model in (translator, bpe):
        strange, usual = model.describe([text, "the dog sees a cat ."])
        assert "\n" not in strange.text
        assert usual.text == model.describe("the dog sees a cat .").text


def test_a_line_of_ten_thousand_words_is_translated_in_parts(translator):
    brief = replace(translator, reader=replace(translator.reader, longest=10))
    once = translator.describe("the dog sees a cat .", beam=1)
    long = brief.describe(" ".join(["the dog sees a cat ."] * 1667), beam=1)
    assert long.text == " ".join([once.text] * 1667)
    assert long.attention is None  # too large to be kept
    short = brief.describe(" ".join(["the dog sees a cat ."] * 30), beam=1)
    assert short.attention.shape == (len(short.tokens), len(short.layout.labels))
    links, own = alignment_of(brief, short).links(), alignment_of(translator, once).links()
    assert [(s, t) for s, t, _ in links] == [
        (s + 6 * n, t + 6 * n) for n in range(30) for s, t, _ in own
    ]


def test_training_that_starts_from_a_model_keeps_its_tokens(folder, tmp_path, translator):
    """Its weights belong to them, whatever words the new text has."""
    rows = [json.loads(line) for line in (folder / "toy.jsonl").read_text().splitlines()]
    for row in rows:
        row["source"] = f"{row['source']} novel"
    (tmp_path / "other.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = recipe(tmp_path / "other.jsonl", steps=1)
    assert "novel" in TranslationData(settings).source_language.vocab.ids
    starts = replace(settings.training, initial=str(folder / "run"))
    data = TranslationData(replace(settings, training=starts))
    assert data.source_language.vocab == translator.reader.sentences.vocab
    assert data.target_language.vocab == translator.codec.vocab


def test_every_sentence_of_a_line_is_translated(translator, tmp_path):
    first, second = "the dog sees a cat .", "the red dog sees a bird ."
    both = translator.describe(f"{first} {second}", n_best=2)
    alone = translator.describe([first, second], n_best=2)
    assert both.text == " ".join(each.text for each in alone)
    assert both.alternatives[0].text == " ".join(each.alternatives[0].text for each in alone)
    assert both.score == pytest.approx(sum(each.score for each in alone), abs=1e-4)
    links = alignment_of(translator, both).links()
    mine, other = (alignment_of(translator, each).links() for each in alone)
    assert [(s, t) for s, t, _ in links] == [
        *((s, t) for s, t, _ in mine),
        *((s + 6, t + len(mine)) for s, t, _ in other),
    ]
    alignment_of(translator, both).figure(tmp_path / "both.svg")
    with pytest.raises(UserError, match="a prefix begins one sentence"):
        translator.describe(f"{first} {second}", prefix="la")


def test_unknown_words_come_from_the_source_or_the_lexicon(folder, tmp_path):
    """Two nouns are in no vocabulary: one is the same in both languages, one is looked up."""

    def rare(text, number):
        for word in ("stone", "petra"):
            text = text.replace(word, f"zeb{number}")
        for word in ("bird", "pajar"):
            text = text.replace(word, f"{word}{number % 40}")
        return text

    lines = [json.loads(line) for line in (folder / "toy.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        line["source"] = rare(line["source"], number)
        line["targets"] = [rare(text, number) for text in line["targets"]]
    manifest = tmp_path / "rare.jsonl"
    manifest.write_text("\n".join(json.dumps(line) for line in lines))
    few = VocabularyConfig("word", min_count=20)
    settings = recipe(manifest, steps=300, source=few, target=few)
    best = train(
        TranslationData(settings), tmp_path / "run", console=Console(quiet=True)
    ).run.best()
    model = sightline.load(tmp_path / "run")
    assert not any(word.startswith(("pajar", "zeb")) for word in model.codec.vocab.tokens)
    train_lines = [line for line in lines if line["split"] == "train"]
    save_lexicon(best, learn_lexicon(model, [(x["source"], x["targets"][0]) for x in train_lines]))
    looks_up = sightline.load(tmp_path / "run")
    assert load_lexicon(best) == looks_up.codec.lexicon
    test_lines = [line for line in lines if line["split"] == "test"]

    def recall(translator, beginning):
        texts = translator.describe([line["source"] for line in test_lines])
        return np.mean(
            [
                word in text.text.split()
                for line, text in zip(test_lines, texts, strict=True)
                for word in line["targets"][0].split()
                if word.startswith(beginning)
            ]
        )

    assert recall(model, "zeb") > 0.85
    assert recall(model, "pajar") == 0
    assert recall(looks_up, "pajar") > 0.85


# ---------------------------------------------------------------------------- shortlists


@pytest.fixture(scope="module")
def with_lexicon(translator):
    pairs = [(" ".join(source), " ".join(target)) for source, target, _ in sentences(300, 0)]
    return add_lexicon(translator, learn_lexicon(translator, pairs))


def add_lexicon(translator, lexicon):
    target, same_unit = target_of(translator), translator.recipe.source == translator.recipe.target
    return replace(
        translator, codec=TranslationCodec(target, translator.recipe, same_unit, lexicon)
    )


def test_a_shortlist_of_everything_changes_nothing(with_lexicon):
    texts = [source for source, _, _ in held_out(10)]
    everything = with_lexicon.describe(texts, shortlist=10_000, n_best=2)
    for mine, full in zip(everything, with_lexicon.describe(texts, n_best=2), strict=True):
        assert mine.tokens == full.tokens
        assert mine.alternatives[0].tokens == full.alternatives[0].tokens
        np.testing.assert_allclose(mine.log_probs, full.log_probs, atol=1e-4)
        np.testing.assert_allclose(mine.attention, full.attention, atol=1e-4)


def test_a_short_shortlist_translates_as_well_and_a_batch_equals_its_singles(with_lexicon):
    texts = [source for source, _, _ in held_out(30)]
    short = with_lexicon.describe(texts, shortlist=4)
    full = with_lexicon.describe(texts)
    same = [mine.text == other.text for mine, other in zip(short, full, strict=True)]
    assert np.mean(same) > 0.85
    commonest = with_lexicon.codec.vocab.tokens[:8]
    for text, mine in zip(texts, short, strict=True):
        alone = with_lexicon.describe(text, shortlist=4)
        assert alone.tokens == mine.tokens
        np.testing.assert_allclose(alone.log_probs, mine.log_probs, atol=1e-4)
        lexicon = with_lexicon.codec.lexicon
        allowed = {t for word in text.split() for t in (word, *lexicon.get(word, ()))}
        assert set(mine.tokens) <= allowed | set(commonest)


def test_shortlists_go_with_ensembles_and_fusion(with_lexicon, language_model):
    text = "the red dog sees a cat near Eva ."
    plain = with_lexicon.describe(text, shortlist=20)
    twice = ensemble(with_lexicon, with_lexicon).describe(text, shortlist=20)
    assert twice.tokens == plain.tokens
    np.testing.assert_allclose(twice.log_probs, plain.log_probs, atol=1e-4)
    helped = fused(with_lexicon, language_model, 0.2)
    everything = helped.describe(text, shortlist=10_000)
    np.testing.assert_allclose(everything.log_probs, helped.describe(text).log_probs, atol=1e-4)


def test_a_shortlist_without_a_lexicon_says_how_to_make_one(translator):
    with pytest.raises(UserError, match="--save-lexicon"):
        translator.describe("the dog", shortlist=10)


# ---------------------------------------------------------------------------- aligning


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_forced_alignments_beat_the_diagonal(translator, bpe, kind):
    model = {"word": translator, "bpe": bpe}[kind]
    pairs = held_out(60)
    alignments = align(model, [s for s, _, _ in pairs], [t for _, t, _ in pairs])
    gold = [GoldAlignment(frozenset(links), frozenset(links)) for _, _, links in pairs]
    ours, theirs = error_rates(alignments, gold)
    right = [
        set(links) & {(s, t) for s, t, _ in a.links()}
        for a, (_, _, links) in zip(alignments, pairs, strict=True)
    ]
    # one link per target word on both sides: the error rate is the share of wrong links
    words = sum(len(a.target) for a in alignments)
    assert ours == pytest.approx(1 - sum(map(len, right)) / words)
    assert theirs > 0.4
    assert ours < 0.5 * theirs


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_copied_names_and_numbers_align_to_themselves(translator, bpe, kind):
    model = {"word": translator, "bpe": bpe}[kind]
    pairs = held_out(60)
    right = []
    for alignment in align(model, [s for s, _, _ in pairs], [t for _, t, _ in pairs]):
        for s, t, confidence in alignment.links():
            assert 0 <= confidence <= 1.0001
            if alignment.target[t] in NAMES + NUMBERS:
                right.append(alignment.source[s] == alignment.target[t])
    assert len(right) > 40
    assert np.mean(right) > 0.85


def test_forcing_a_translation_gives_the_searchs_result(translator):
    source = "the red dog sees a cat near Eva ."
    description = translator.describe(source)
    (forced,) = translator.force([source], [description.text])
    assert forced.tokens == description.tokens
    np.testing.assert_allclose(forced.log_probs, description.log_probs, atol=1e-4)
    np.testing.assert_allclose(forced.attention, description.attention, atol=1e-4)


def test_word_weights_are_the_mean_over_target_and_the_sum_over_source_pieces(bpe):
    source, target = "the gorgeous Anna .", "ka Dmitri ."
    (forced,) = bpe.force([source], [target], posterior=True)
    (alignment,) = align(bpe, [source], [target])
    assert alignment.source == ("the", "gorgeous", "Anna", ".")
    assert alignment.target == ("ka", "Dmitri", ".")
    assert len(forced.layout.labels) > 6  # words of several pieces
    starts = [i for i, label in enumerate(forced.layout.labels) if label.startswith("▁")]
    rows = [i for i, token in enumerate(forced.tokens) if token.startswith("▁")]
    word = forced.attention[rows[1] : rows[2]].mean(0)
    expected = [word[a:b].sum() for a, b in zip(starts, [*starts[1:], -1], strict=True)]
    np.testing.assert_allclose(alignment.weights[1], expected, rtol=1e-5)


def test_pairs_with_an_empty_or_endless_side_have_empty_alignments(translator, bpe):
    sources, targets = ["", "the dog", "the"], ["ka", " ", "ka " * 3000]
    for empty in (*align(translator, sources, targets), *align(bpe, sources, targets)):
        assert empty.links() == []
        assert empty.pharaoh() == ""
    with pytest.raises(DataError, match="no pairs"):
        align(translator, ["a"], [])


# ---------------------------------------------------------------------------- combining


def test_an_ensemble_of_one_model_twice_equals_it(translator):
    texts = [source for source, _, _ in held_out(8)]
    twice = ensemble(translator, translator)
    for mine, alone in zip(twice.describe(texts), translator.describe(texts), strict=True):
        assert mine.text == alone.text
        np.testing.assert_allclose(mine.log_probs, alone.log_probs, atol=1e-4)
        np.testing.assert_allclose(mine.attention, alone.attention, atol=1e-4)


def test_models_of_other_vocabularies_are_no_ensemble(translator, bpe):
    with pytest.raises(UserError, match="model 2 has another source vocabulary"):
        ensemble(translator, bpe)


@pytest.fixture(scope="module")
def language_model(folder):
    text = "\n".join(target for _, target, _ in held_out(400, seed=9))
    (folder / "text.txt").write_text(text)
    settings = recipe(folder / "toy.jsonl", steps=60)
    lm = LanguageModelRecipe(
        text=str(folder / "text.txt"),
        unit="word",
        sequence="line",
        batching=BatchingConfig("token_budget", 1500),
        training=replace(settings.training, select="loss"),
    )
    lm = replace(lm, model=replace(lm.model, embedding=32, hidden=48))
    train(TextData(lm), folder / "lm", console=Console(quiet=True))
    return sightline.load(folder / "lm")


def test_shallow_fusion_adds_the_language_models_scores(translator, language_model):
    source = "the red dog sees a cat ."
    target = translator.describe(source).text
    both = fused(translator, language_model, 0.3)
    (together,) = both.force([source], [target])
    (own,) = translator.force([source], [target])
    (prior,) = language_model.force([""], [target])
    expected = np.array(own.log_probs) + 0.3 * np.array(prior.log_probs)
    np.testing.assert_allclose(together.log_probs, expected, atol=1e-4)
    assert both.describe(source).text == target  # it is right without help
    none = fused(translator, language_model, 0.0).describe(source)
    np.testing.assert_allclose(none.log_probs, translator.describe(source).log_probs, atol=1e-5)


def test_a_language_model_of_other_tokens_is_refused(bpe, language_model):
    with pytest.raises(UserError, match="language model knows"):
        fused(bpe, language_model, 0.3)


def test_averaged_checkpoints_are_a_model(folder, tmp_path):
    from safetensors.numpy import load_file

    taken = average_checkpoints(folder / "run", tmp_path / "mean", newest=2)
    assert len(taken) == 2
    first, second, mean = (
        load_file(path / "weights.safetensors") for path in (*taken, tmp_path / "mean")
    )
    for name, values in mean.items():
        np.testing.assert_allclose(values, (first[name] + second[name]) / 2, atol=1e-6)
    assert sightline.load(tmp_path / "mean").describe("the dog sees a cat .").text
    with pytest.raises(UserError, match="already there"):
        average_checkpoints(folder / "run", tmp_path / "mean")


# ---------------------------------------------------------------------------- commands


def call(function, *arguments, input=None):
    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)


def test_translate_keeps_lines_in_order_and_empty_ones_empty(folder, translator):
    lines = ["the dog sees a cat .", "", "a big tree likes the bird .", " ", "every boy eats ."]
    expected = [translator.describe(line).text for line in lines]
    piped = call(translate_command, "-m", folder / "run", input="\n".join(lines))
    assert piped.exit_code == 0, piped.output
    assert piped.stdout.split("\n") == [*expected, ""]
    (folder / "in.txt").write_text("\n".join(lines) + "\n")
    from_file = call(translate_command, "-m", folder / "run", "--input", folder / "in.txt")
    assert from_file.stdout == piped.stdout
    given = call(translate_command, lines[0], lines[2], "-m", folder / "run")
    assert given.stdout.splitlines() == [expected[0], expected[2]]
    empty = call(translate_command, "-m", folder / "run", input="")
    assert (empty.exit_code, empty.stdout) == (0, "")


def test_translate_answers_each_line_before_the_next_is_written(folder, cli_environment):
    """A program on the other end of the pipe may wait for every answer."""
    code = (
        "import typer; from sightline.tasks.translate.commands import translate\n"
        "app = typer.Typer(); app.command()(translate); app()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "-m", str(folder / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=cli_environment,
        text=True,
    ) as process:
        for _ in range(2):
            process.stdin.write("the dog sees a cat .\n")
            process.stdin.flush()
            assert "hundo" in process.stdout.readline()
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_translate_prints_n_best_lists_alignments_and_json(folder):
    text = "the dog sees a cat ."
    both = call(translate_command, text, "-m", folder / "run", "--n-best", 2, "--align")
    rows = [line.split(" ||| ") for line in both.stdout.splitlines()]
    assert [row[0] for row in rows] == ["1", "1"]
    assert float(rows[0][2]) >= float(rows[1][2])
    assert "0-0" in rows[0][3].split()
    shown = call(translate_command, text, "-m", folder / "run", "--json", "--align")
    content = json.loads(shown.stdout)
    assert content["source"] == text
    assert content["alignment"]["links"][0][:2] == [0, 0]
    assert len(content["attention"]) == len(content["tokens"])
    ensemble = call(translate_command, text, "-m", folder / "run", "-m", folder / "run")
    assert ensemble.stdout.strip() == content["text"]


def test_translate_takes_a_language_model_and_draws(folder, language_model, tmp_path):
    options = ["-m", folder / "run", "--lm", folder / "lm", "--lm-weight", 0.2]
    done = call(translate_command, "the dog sees a cat .", *options, "--figure", tmp_path)
    assert done.exit_code == 0, done.output
    assert "hundo" in done.stdout
    assert (tmp_path / "1.png").stat().st_size > 1000


def test_a_line_too_long_to_align_is_named_and_the_others_are_aligned(folder, monkeypatch):
    monkeypatch.setattr(batches, "LARGEST_MATRIX", 400)
    text = "the dog sees a cat . " * 20
    done = call(translate_command, text, "the dog sees a cat .", "-m", folder / "run", "--align")
    assert done.exit_code == 0, done.output
    assert "note: line 1 is too long to align" in done.stderr
    first, second = done.stdout.splitlines()
    assert first.endswith("||| ")
    assert "0-0" in second


def test_bad_input_to_translate_is_named(folder, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\nnot \xff so\n")
    bad = call(translate_command, "-m", folder / "run", "-i", tmp_path / "bad.txt")
    assert isinstance(bad.exception, DataError)
    assert "bad.txt:2: not UTF-8: byte 9 is 0xff" in str(bad.exception)
    piped = call(translate_command, "-m", folder / "run", input=b"fine\nnot \xff so\n")
    assert "standard input:2: not UTF-8: byte 4" in str(piped.exception)
    assert len(piped.stdout.splitlines()) == 1  # the line before it was answered
    none = call(translate_command, "a text")
    assert "name a model: --model en-de" in str(none.exception)
    other = call(translate_command, "a text", "-m", folder / "absent")
    assert "no model at" in str(other.exception)


def test_align_writes_pharaoh_or_json_and_keeps_the_lexicon(folder, translator, tmp_path):
    pairs = held_out(30)
    sources, targets = [s for s, _, _ in pairs], [t for _, t, _ in pairs]
    (tmp_path / "s").write_text("\n".join([*sources, ""]) + "\n")
    (tmp_path / "t").write_text("\n".join([*targets, "ka"]) + "\n")
    done = call(align_command, tmp_path / "s", tmp_path / "t", "-m", folder / "run")
    assert done.exit_code == 0, done.output
    expected = [each.pharaoh() for each in align(translator, sources, targets)]
    assert done.stdout.split("\n") == [*expected, "", ""]
    as_json = call(
        align_command, tmp_path / "s", tmp_path / "t", "-m", folder / "run", "--format", "json"
    )
    content = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert content[0]["source"] == sources[0].split()
    assert all(0 <= link[2] <= 1 for link in content[0]["links"])
    few = call(
        align_command, tmp_path / "s", tmp_path / "t", "-m", folder / "run",
        "--min-confidence", 0.99,
    )  # fmt: skip
    assert len(few.stdout.split()) < len(done.stdout.split())
    gold = [" ".join(f"{s + 1}-{t + 1}" for s, t in links) for _, _, links in pairs]
    (tmp_path / "gold").write_text("\n".join([*gold, ""]) + "\n")
    scored = call(
        align_command, tmp_path / "s", tmp_path / "t", "-m", folder / "run",
        "--gold", tmp_path / "gold",
    )  # fmt: skip
    rate, diagonal = re.findall(r"0\.\d+", scored.stderr)
    assert float(rate) < 0.5 * float(diagonal)
    average_checkpoints(folder / "run", tmp_path / "model", newest=1)
    kept = call(
        align_command, tmp_path / "s", tmp_path / "t", "-m", tmp_path / "model", "--save-lexicon"
    )
    assert kept.exit_code == 0, kept.output
    assert next(iter(sightline.load(tmp_path / "model").codec.lexicon["dog"])) == "hundo"
    (tmp_path / "t").write_text("one\n")
    unequal = call(align_command, tmp_path / "s", tmp_path / "t", "-m", folder / "run")
    assert "has 31 lines and" in str(unequal.exception)


def test_average_command(folder, tmp_path):
    done = call(average_command, folder / "run", "--out", tmp_path / "mean", "--newest", 2)
    assert done.exit_code == 0, done.output
    assert "the mean of " in done.stdout
    assert done.stdout.count("step-") == 2
    absent = call(average_command, tmp_path / "absent", "--out", tmp_path / "other")
    assert isinstance(absent.exception, UserError)


# ---------------------------------------------------------------------------- recipes, figures


@pytest.mark.parametrize("name", ["wmt-en-fr", "multi30k-en-de", "multi30k-de-en-simple"])
def test_shipped_recipes_train_on_tiny_data(folder, tmp_path, name):
    from sightline.commands.recipes import SHIPPED

    small = [
        "training.steps=2", "training.evaluate_every=2", "training.tensorboard=false",
        "encoder.hidden=8", "model.hidden=16", "encoder.embedding=8", "model.embedding=8",
        "search.beam=2",
    ]  # fmt: skip
    manifest = f"manifest={folder / 'toy.jsonl'}"
    shipped = read_recipe(SHIPPED / f"{name}.yaml", [manifest, *small])
    outcome = train(TranslationData(shipped), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.step == 2


def test_a_manifest_without_dev_or_with_only_long_pairs_is_refused(tmp_path):
    line = {"source": "a b c", "targets": ["d e f"], "split": "train"}
    (tmp_path / "m.jsonl").write_text(json.dumps(line))
    with pytest.raises(DataError, match='no item of split "dev"'):
        TranslationData(recipe(tmp_path / "m.jsonl"))
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line | {"split": "dev"}))
    with pytest.raises(DataError, match="at most longest=2"):
        TranslationData(recipe(tmp_path / "m.jsonl", longest=2))


def test_quality_by_length_is_corpus_bleu_within_each_class(tmp_path):
    import sacrebleu

    rows = [(n, f"a b c d e {n}", "a b c d e 7") for n in range(1, 101)]
    classes = quality_by_length(rows, [0, 50, 100])
    assert [(length, size) for length, _, size in classes] == [(25.5, 50), (75.5, 50)]
    expected = sacrebleu.corpus_bleu([h for _, h, _ in rows[50:]], [[r for _, _, r in rows[50:]]])
    assert classes[1][1] == pytest.approx(expected.score)
    draw_quality_by_length({"attention": rows, "simple": rows[:60]}, tmp_path / "lengths.png")
    assert (tmp_path / "lengths.png").stat().st_size > 5000
    with pytest.raises(UserError, match="at least one system"):
        draw_quality_by_length({}, tmp_path / "x.png")


def test_the_toy_languages_links_are_a_permutation():
    for source, target, links in sentences(50, 3):
        assert sorted(s for s, _ in links) == list(range(len(source)))
        assert sorted(t for _, t in links) == list(range(len(target)))
