"""Point and tell: where a box on the picture steers the attention, and what it leaves alone."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import sightline
from shape_pictures import draw
from sightline.config import AttentionConfig
from sightline.errors import UserError
from sightline.media.focus import LOWERED, check_focus, focus_bias, parse_focus
from sightline.nn.attention import Attention
from sightline.runtime.describer import Options
from sightline.search import BeamOptions, beam, constrain, finish
from sightline.search.constraints import Banned
from sightline.types import ContextSet, Description

WHOLE = (0.0, 0.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def captioner(shapes):
    folder, _, _ = shapes
    return sightline.load(folder / "run")


def picture(colour="red", shape="square", seed=1):
    return np.asarray(draw(colour, shape, seed))


def inside(description, bias):
    """The share of attention on cells that the box covers, per word."""
    return description.attention[:, bias > -LOWERED / 2].sum(1)


def same(one, other):
    assert one.tokens == other.tokens
    np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)
    np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)


# ---------------------------------------------------------------------------- the map to cells


def test_cells_are_lowered_by_how_much_the_box_leaves_out():
    bias = focus_bias((0.25, 0.0, 0.5, 0.5), WHOLE, (2, 2)).reshape(2, 2)
    assert bias.tolist() == [[0, 0], [-LOWERED, -LOWERED]]  # both upper ones half covered
    bias = focus_bias((0.5, 0.5, 0.375, 0.5), WHOLE, (4, 4)).reshape(4, 4)
    expected = np.full((4, 4), -LOWERED)
    expected[2:, 2], expected[2:, 3] = 0, -LOWERED / 2
    assert np.array_equal(bias, expected)


def test_a_box_smaller_than_a_cell_steers_as_much_as_a_large_one():
    bias = focus_bias((0.05, 0.9, 0.01, 0.01), WHOLE, (3, 3)).reshape(3, 3)
    assert bias[2, 0] == 0
    assert (np.delete(bias.ravel(), 6) == -LOWERED).all()


def test_the_box_is_of_the_picture_and_the_cells_are_of_what_the_model_sees():
    wide = (0.25, 0.0, 0.75, 1.0)  # the middle half of a picture twice as wide as high
    bias = focus_bias((0.25, 0.0, 0.25, 1.0), wide, (2, 2)).reshape(2, 2)
    assert bias.tolist() == [[0, -LOWERED], [0, -LOWERED]]
    with pytest.raises(UserError, match="outside the part of the picture that the model sees"):
        focus_bias((0.0, 0.0, 0.2, 1.0), wide, (2, 2))


@pytest.mark.parametrize(
    "wrong", ["", "0,0,1", "a,b,c,d", "0,0,0,1", "1,0,1,1", "-0.1,0,1,1", "0,0,2,1", "nan,0,1,1"]
)
def test_what_is_no_box_is_refused(wrong):
    with pytest.raises(UserError, match="focus"):
        parse_focus(wrong)


def test_a_box_may_reach_over_the_edge():
    assert parse_focus("0.5, 0.5, 0.75, 1") == check_focus([0.5, 0.5, 0.75, 1.0])
    assert focus_bias((0.5, 0.5, 0.75, 1.0), WHOLE, (2, 2)).tolist() == [-LOWERED] * 3 + [0]


# ---------------------------------------------------------------------------- what it does


@pytest.mark.parametrize("kind", ["content", "location"])
def test_the_bias_multiplies_the_weights(kind):
    """softmax(e + b) ∝ softmax(e) · exp(b), for K rows of each example."""
    torch.manual_seed(0)
    config = AttentionConfig(kind=kind, size=8, filters=2, width=3)
    attention = Attention(config, query_size=4, value_size=6).eval()
    context = attention.prepare(ContextSet(torch.randn(2, 5, 6), torch.ones(2, 5).bool()))
    query, before, bias = torch.randn(4, 4), torch.rand(4, 5), torch.randn(2, 5)
    free = attention(query, context, before).weights
    steered = attention(
        query, ContextSet(context.values, context.mask, context.keys, bias), before
    ).weights
    expected = free * bias.repeat_interleave(2, 0).exp()
    torch.testing.assert_close(steered, expected / expected.sum(1, keepdim=True))


@pytest.mark.parametrize("box", [(0, 0, 0.34, 0.34), (0.67, 0.67, 0.33, 0.33), (0, 0, 1, 0.3)])
def test_attention_goes_into_the_box(captioner, box):
    for seed in range(3):
        source = picture(seed=seed)
        (layout,) = captioner.reader.read(source)[0].layouts
        bias = focus_bias(box, layout.box, layout.shape)
        free, steered = captioner.describe(source), captioner.describe(source, focus=box)
        assert inside(steered, bias).min() > 0.95 > inside(free, bias).mean()


def test_no_focus_and_a_level_bias_leave_the_result_alone(captioner):
    source = picture()
    free = captioner.describe(source, n_best=3)
    everywhere = captioner.describe(source, n_best=3, focus=(0, 0, 1, 1))
    assert json.dumps(free.to_json()) == json.dumps(everywhere.to_json())
    (inputs,) = captioner.reader.read(source)
    stepper = constrain(captioner.stepper, Banned(captioner.codec.banned))
    options = BeamOptions(max_length=10, size=3)
    plain = finish(beam(stepper, captioner.encode(inputs), options))[0][0]
    assert captioner.codec.vocab.decode(plain.tokens[:-1]) == free.text
    assert np.array_equal(plain.attention[:-1], free.attention)


def test_a_batch_with_different_boxes_equals_its_singles(captioner):
    boxes = [(0, 0, 0.4, 0.4), None, (0.6, 0.5, 0.4, 0.5)]
    sources = [picture(seed=s, colour=c) for s, c in enumerate(["red", "green", "blue"])]
    read = captioner.reader.read
    inputs = [each for s, b in zip(sources, boxes, strict=True) for each in read(s, focus=b)]
    together = captioner.descriptions(finish(captioner.search(inputs, Options())), inputs)
    for source, box, description in zip(sources, boxes, together, strict=True):
        same(description, captioner.describe(source, focus=box))
    together = captioner.describe(sources, focus=boxes[0])
    for source, description in zip(sources, together, strict=True):
        same(description, captioner.describe(source, focus=boxes[0]))


def test_the_command_takes_a_box(run_cli, shapes, captioner):
    folder, _, _ = shapes
    box = "0.7,0.7,0.3,0.3"
    done = run_cli(
        "describe", "84.png", "--model", "run", "--json", "--focus", box, "--prefix", "a",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = captioner.describe(folder / "84.png", focus=parse_focus(box), prefix="a")
    printed = json.loads(done.stdout)
    assert printed["text"] == expected.text
    np.testing.assert_allclose(printed["attention"], expected.attention, atol=1e-5)
    wrong = run_cli("describe", "84.png", "--model", "run", "--focus", "0,0", cwd=folder)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("sightline: focus 0,0 is no box")


def test_a_bias_that_does_not_fit_is_refused(captioner):
    context = captioner.encode(captioner.reader.read(picture())[0])
    with pytest.raises(UserError, match="bias of shape"):
        captioner.stepper.start(replace(context, bias=np.zeros((1, 2), np.float32)))


# ---------------------------------------------------------------------------- partial results


def test_a_stream_ends_with_what_describe_gives(captioner):
    source = picture("blue", "circle")
    *partials, last = captioner.stream(source, n_best=2, prefix="there")
    whole = captioner.describe(source, n_best=2, prefix="there")
    assert isinstance(last, Description)
    assert json.dumps(last.to_json()) == json.dumps(whole.to_json())
    assert [partial.step for partial in partials] == list(range(1, len(partials) + 1))
    assert partials[-1].text == whole.text


def test_the_tree_of_a_stream_hangs_together(captioner):
    nodes = {}
    *partials, _ = captioner.stream(picture("green"), beam=4)
    for partial in partials:
        before = set(nodes)
        for node in partial.nodes:
            assert node.parent is None if partial.step == 1 else node.parent in before
            assert node.id not in nodes
            nodes[node.id] = node
        assert len(partial.alive) <= 4
        words, at = [], partial.best
        while at is not None:
            words.insert(0, nodes[at].token)
            at = nodes[at].parent
        ended = nodes[partial.best].finished
        assert tuple(words[: len(words) - ended]) == partial.tokens
        json.dumps(partial.to_json())
