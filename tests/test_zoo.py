"""The models that ship: each loads, has its card, and does what the card says."""

import numpy as np
import pytest

import sightline
from sightline import zoo
from sightline.data.trees import read_trees, words_of
from sightline.errors import UserError
from sightline.metrics.error_rate import edits
from sightline.tasks.transcribe import demo
from sightline.tasks.transcribe.timing import spans
from sightline.tasks.translate.alignments import alignment_of

MEGABYTES = {
    "clips": 25,
    "coco": 25,
    "default": 40,
    "shakespeare": 40,
    "en-de": 15,
    "en-fr": 15,
    "penn": 4,
    "hull": 1,
    "trec": 3,
    "babi": 1,
    "phones": 6,
}


def test_these_models_ship():
    assert zoo.names() == sorted(MEGABYTES)


@pytest.mark.parametrize("name", sorted(MEGABYTES))
def test_a_model_is_small_and_has_a_card(name):
    folder = zoo.FOLDER / name
    assert sum(path.stat().st_size for path in folder.iterdir()) < MEGABYTES[name] * 1e6
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {name}\n")
    for part in ("**Data:**", "**Score:**", "**Trained:**", "**Limits:**", "**Terms:**"):
        assert part in card


@pytest.mark.parametrize(
    ("name", "dog", "beach"), [("en-de", "Hund", "Strand"), ("en-fr", "chien", "plage")]
)
def test_a_translator_knows_its_words_and_where_they_came_from(name, dog, beach):
    model = sightline.load(name)
    alignment = alignment_of(model, model.describe("A brown dog runs on the beach."))
    links = {alignment.target[t]: alignment.source[s] for s, t, _ in alignment.links()}
    assert links[dog] == "dog"
    assert links[f"{beach}."] == "beach."


def test_a_hull_is_found_in_any_order():
    corners, inside = [(0, 0), (9, 1), (8, 8), (1, 7)], [(4, 4), (5, 3)]
    model = sightline.load("hull")
    for points in (corners + inside, inside + corners[::-1]):
        found = [points[int(i)] for i in model.describe(np.array(points)).text.split()]
        assert found == corners


def test_a_recogniser_hears_the_recording_that_ships():
    pytest.importorskip("soundfile")
    pytest.importorskip("kaldi_native_fbank")
    model = sightline.load("phones")
    found = model.describe(demo.SOUND)
    # as flite pronounces it
    said = "HH AH L OW AY AE M AH M AH SH IY N DH AE T S P IY K S AE N D Y UW K AE N"
    said = [*said.split(), "HH", "IH", "R", "EH", "V", "ER", "IY", "S", "AW", "N", "D"]
    assert edits(said, found.tokens) <= 0.15 * len(said)
    times = [span.start for span in spans(found)]
    assert times == sorted(times)
    assert times[0] < 0.4
    assert 4 < times[-1] < 4.75
    assert model.describe(np.zeros(16_000, np.float32)).text == ""  # silence


@pytest.mark.parametrize(
    "points",
    [[(2, 3)], [(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(1, 1)] * 4, [(0, 0), (0, 0), (3, 1)]],
)
def test_points_without_a_hull_get_an_answer(points):
    found = [int(i) for i in sightline.load("hull").describe(np.array(points)).text.split()]
    assert found
    assert len({points[i] for i in found}) == len(found) <= 3


def test_a_parser_writes_trees_of_any_words():
    model = sightline.load("penn")
    found = model.describe("The company said it will buy the shares.")
    assert found.text == (
        "(S (NP (DT The) (NN company)) (VP (VBD said) (SBAR (S (NP (PRP it)) "
        "(VP (MD will) (VP (VB buy) (NP (DT the) (NNS shares))))))) (. .))"
    )
    assert model.describe("").text == ""
    for odd in ("Glorp", "zyx wvu qrs", "! ? ...", "( ( (", "\u732b \u0623\u0645 \U0001f600"):
        (tree,) = read_trees(model.describe(odd).text)
        assert [leaf.word for leaf in tree.leaves()] == words_of(odd)


def test_a_clip_is_described_with_its_moments():
    """An astronaut's portrait, and then a bird on a rock: what was said is seen in one of them."""
    pytest.importorskip("av", reason="clips need PyAV")
    from sightline.tasks.clip.parts import sample_clips

    model = sightline.load("clips")
    (sample,) = sample_clips(model.recipe)
    found = model.describe(sample)
    assert "bird" in found.tokens
    times = np.array(found.layout.times)
    assert len(times) == 16
    late = found.attention[found.tokens.index("bird")][times >= 4].sum()
    assert late > 0.7
    assert model.describe(sample.read_bytes()).text == found.text


def test_a_classifier_tells_what_is_asked_for():
    model = sightline.load("trec")
    for question, wanted in (
        ("How far is the moon?", "number"),
        ("Who wrote the first opera?", "human"),
        ("Where do penguins live?", "location"),
        ("Why is the sky blue?", "description"),
        ("What does NASA stand for?", "abbreviation"),
    ):
        assert model.describe(question).text == wanted
    assert model.describe("").text == ""
    for odd in ("Glorp", "?", "\u732b \U0001f600", "what " * 2000):
        assert np.isfinite(model.describe(odd).score)


def test_a_reader_of_stories_answers_by_the_facts():
    model = sightline.load("babi")
    apple = "Daniel took the apple. Mary went to the office. Daniel went to the kitchen. "
    for story, question, wanted in (
        (apple, "Where is the apple?", "kitchen"),
        (apple, "Is Mary in the kitchen?", "no"),
        (apple, "What is Daniel carrying?", "apple"),
        ("Jeff took the milk there. Jeff gave the milk to Fred. ", "Who gave the milk?", "jeff"),
        (
            "Sheep are afraid of wolves. Gertrude is a sheep. ",
            "What is Gertrude afraid of?",
            "wolf",
        ),
    ):
        assert model.describe(story + question).text == wanted
    found = model.describe(apple + "Where is the apple?")
    facts = [found.layout.labels[i] for i in found.attention.argmax(1)]
    assert facts[:2] == ["Daniel took the apple.", "Daniel went to the kitchen."]
    assert model.describe("").text == ""
    for odd in ("Where is Mary?", "Glorp zyx. Quux?", apple * 50 + "Where is the apple?"):
        assert np.isfinite(model.describe(odd).score)
        assert model.describe(odd).text
    with pytest.raises(UserError, match="at most 12"):
        model.describe("Mary " * 13 + ". Where is Mary?")
