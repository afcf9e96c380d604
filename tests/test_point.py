"""Pointer networks: problems with known answers, small networks that point at them."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient
from typer.testing import CliRunner

import sightline
from sightline.cli import app
from sightline.errors import ConfigError, DataError, UserError
from sightline.tasks import build_task, read_recipe
from sightline.tasks.point import problems
from sightline.tasks.point.evaluation import published
from sightline.tasks.point.parts import points_of, positions, scaled
from sightline.training.loop import train

RECIPES = Path(sightline.__file__).parent / "recipes"
SMALL = (
    *("encoder.embedding=16", "encoder.hidden=16", "model.embedding=16", "model.hidden=32"),
    *("model.attention.size=16", "batch=32", "training.precision=float32"),
    *("training.tensorboard=false", "training.optimiser.learning_rate=0.01"),
)
LINE = [[0, 0], [1, 1], [2, 2]]
ODD = {
    "one": [[3.5, -2]],
    "two": [[0, 0], [1, 5]],
    "line": LINE,
    "equal": [[1, 1]] * 5,
    "twice": [[0, 0], [4, 0], [4, 0], [4, 4], [0, 4], [0, 4], [0, 0]],
    "huge": [[1e90, 0], [0, 1e90], [-1e90, 5]],
}


def trained(folder, problem, *overrides):
    recipe = read_recipe(
        RECIPES / f"{problem}.yaml", ["sizes=[5,5]", "test.size=5", *SMALL, *overrides]
    )
    train(build_task(recipe), folder / problem, console=Console(quiet=True))
    return folder / problem


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Networks that have hardly learnt, of every problem: constraints have to do their work."""
    folder = tmp_path_factory.mktemp("point")
    steps = ("training.steps=4", "training.evaluate_every=4", "sizes=[4,9]")
    return {name: trained(folder, name, *steps) for name in ("sort", "hull", "delaunay", "tour")}


@pytest.fixture(scope="module")
def exports(runs):
    for run in runs.values():
        command("export", run, run.with_suffix(".onnx"))
    return {name: run.with_suffix(".onnx") for name, run in runs.items()}


def command(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code and result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


# ---------------------------------------------------------------- problems


def test_hulls_equal_scipys():
    spatial = pytest.importorskip("scipy.spatial")
    for size in (3, 5, 20, 100):
        points = problems.draw("hull", 10, size, size)
        for each, answer in zip(points, problems.solve("hull", points), strict=True):
            theirs = [int(i) for i in spatial.ConvexHull(each).vertices]
            assert problems.rotated(answer) == problems.rotated(theirs)
            assert answer[0] == each[:, 0].argmin()
            assert problems.is_convex(each, answer)
            assert problems.area(each, answer) == pytest.approx(spatial.ConvexHull(each).volume)


def test_no_tour_is_shorter():
    for size in (3, 4, 6, 7):
        points = problems.draw("tour", 4, size, size)
        for each, answer in zip(points, problems.solve("tour", points), strict=True):
            every = itertools.permutations(range(1, size))
            least = min(problems.length(each, [0, *others]) for others in every)
            assert problems.length(each, answer) == pytest.approx(least)
            assert answer[0] == each[:, 0].argmin()
            assert problems.signed_area(each, answer) > 0


def test_held_and_karp_agree_with_fast_tsp():
    pytest.importorskip("fast_tsp")
    for size in (11, 14):  # 14: made more by copies of a city
        points = problems.draw("tour", 3, size, 0)
        for each, answer in zip(points, problems.held_karp(points), strict=True):
            near = pytest.approx(problems.length(each, answer), rel=1e-4)
            found = problems.tour(each)
            assert sorted(found) == list(range(size))
            assert problems.length(each, found) == near


def test_no_point_is_inside_a_triangles_circle():
    pytest.importorskip("scipy")
    for points in problems.draw("delaunay", 5, 8, 0):
        answer = problems.delaunay(points)
        corners = np.array(answer).reshape(-1, 3)
        assert (np.diff(corners, axis=1) > 0).all()
        for triangle in corners:
            a, b, c = points[triangle]
            sums = [[2 * (b - a)[0], 2 * (b - a)[1]], [2 * (c - a)[0], 2 * (c - a)[1]]]
            centre = np.linalg.solve(sums, [b @ b - a @ a, c @ c - a @ a])
            apart = np.linalg.norm(points - centre, axis=1)
            assert (apart >= np.linalg.norm(a - centre) - 1e-9).all()
        areas = [problems.area(points, list(triangle)) for triangle in corners]
        assert sum(areas) == pytest.approx(problems.area(points, problems.hull(points)))


def test_answers_are_scored():
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    right = [0, 1, 2, 3]
    assert problems.score("hull", square, [2, 3, 0, 1], right)["exact"] == 1
    half = problems.score("hull", square, [0, 1, 2], right)
    assert half == {"exact": 0, "area": pytest.approx(0.5), "valid": 1}
    for wrong in ([0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 4, 3], [0, 1, 2, 2], [], [0, 1]):
        assert problems.score("hull", square, wrong, right)["valid"] == 0
    longer = problems.score("tour", square[:4], [0, 2, 1, 3], right)
    assert longer["excess"] == pytest.approx((2 + 2 * 2**0.5) / 4 - 1)
    assert problems.score("tour", square[:4], [0, 3, 2, 1], right)["exact"] == 1
    assert problems.score("tour", square[:4], [0, 1, 2], right)["valid"] == 0
    numbers = np.array([[2.0], [1], [2]])
    assert problems.score("sort", numbers, [1, 2, 0], [1, 0, 2])["exact"] == 1  # equal numbers
    assert problems.score("sort", numbers, [0, 1, 2], [1, 0, 2])["exact"] == 0
    some = problems.score("delaunay", square, [0, 1, 4, 1, 2, 3], [0, 1, 4, 1, 2, 4])
    assert some == {"exact": 0, "triangles": 0.5, "valid": 1}
    assert problems.score("delaunay", square, [0, 1, 4] * 2, [0, 1, 4])["valid"] == 0


def test_published_answers_are_ours(shared_data):
    for name, problem in (("convex_hull_5_test", "hull"), ("tsp_10_test_exact", "tour")):
        instances = published(shared_data / "pointer" / f"{name}.txt.xz", problem)
        assert len(instances) == 10_000
        points = np.stack([each.points for each in instances[:100]])
        for each, answer in zip(instances, problems.solve(problem, points), strict=False):
            scores = problems.score(problem, each.points, answer, each.answer)
            assert scores["exact"] == 1


# ---------------------------------------------------------------- reading


def test_points_are_read_in_many_ways():
    expected = [[0, 1], [2, 3.5]]
    same = ("0,1 2,3.5", "0 1 2 3.5", "0,1; 2,3.5", "[[0, 1], [2, 3.5]]", "0 1 2 3.5 output 1 2 1")
    for source in (*same, expected, np.array(expected)):
        assert points_of(source, 2).tolist() == expected
    assert points_of("3, 1 2", 1).tolist() == [[3], [1], [2]]
    assert points_of(expected, 1).tolist() == [[0], [2]]  # to be sorted from left to right


@pytest.mark.parametrize(
    "wrong", ["", "a b", "1 2 3", "nan 1", "1e999 1", "[[1, 2], [3]]", "[", [], [[1, 2, 3]]]
)
def test_what_are_no_points_is_refused(wrong):
    with pytest.raises(DataError):
        points_of(wrong, 2)


def test_scaling_changes_no_answer():
    points = problems.draw("hull", 3, 9, 1)
    same = scaled(points)
    assert same.min() == pytest.approx(-1)
    assert same.max() == pytest.approx(1)
    np.testing.assert_allclose(scaled(5 * points - 3), same, atol=1e-12)
    assert problems.solve("hull", same) == problems.solve("hull", points)
    assert (scaled(np.ones((4, 2))) == 0).all()


def test_points_read_from_left_to_right_keep_their_numbers(runs):
    model = sightline.load(runs["delaunay"])  # its recipe says order: sorted
    points = np.array([[0.9, 0.1], [0.1, 0.2], [0.5, 0.9]])
    (read,) = model.reader.read(points)
    assert read.layouts[0].labels == ("1", "2", "0")
    assert read.layouts[0].coordinates[0] == (0.1, 0.2)
    assert sorted(positions(model.describe(points).text)) == [0, 1, 2]


# ---------------------------------------------------------------- networks


def batch(seed=5):
    return [problems.draw("hull", 1, n, [seed, n])[0] for n in (4, 7, 9, 5, 12, 7)]


@pytest.mark.parametrize("name", ["sort", "hull", "delaunay", "tour"])
def test_outputs_are_valid_alike_in_torch_and_onnx_and_alone(runs, exports, name):
    model, ours = sightline.load(runs[name]), sightline.load(exports[name])
    sources = [each[:, :1] if name == "sort" else each for each in batch()]
    for options in ({}, {"beam": 1}, {"beam": 8, "n_best": 3}):
        theirs = model.describe(sources, **options)
        for source, mine, its in zip(
            sources, ours.describe(sources, **options), theirs, strict=True
        ):
            alone = ours.describe(source, **options)
            for one in (mine, *mine.alternatives):
                found = positions(one.text)
                assert problems.score(name, source, found, found or [0])["valid"] == 1, found
            np.testing.assert_allclose(mine.log_probs, alone.log_probs, atol=1e-4)
            assert mine.text == alone.text
            assert mine.score == pytest.approx(its.score, abs=0.05)
    *partial, last = ours.stream(sources[0])
    assert partial[-1].tokens == last.tokens


@pytest.mark.parametrize("name", ["hull", "delaunay", "tour"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_points_get_an_answer(exports, name, odd):
    points = np.array(ODD[odd], np.float64)
    found = sightline.load(exports[name]).describe(points)
    numbers = positions(found.text)
    assert set(numbers) <= set(range(len(points)))
    if name == "tour":
        assert sorted(numbers) == list(range(len(points)))
    if name == "hull":
        assert len(set(numbers)) == len(numbers) > 0


def test_a_set_has_no_order(exports):
    model = sightline.load(exports["hull"])
    points = problems.draw("hull", 1, 9, 4)[0]
    order = np.random.default_rng(0).permutation(9)
    found = positions(model.describe(points).text)
    same = [int(order[i]) for i in positions(model.describe(points[order]).text)]
    assert same == found


def test_without_constraints_anything_can_be_written(runs):
    model = sightline.load(runs["tour"])
    free = replace(model.codec.recipe, constrained=False)
    assert model.codec.constraints([None], 5) != []
    assert type(model.codec)(free).constraints([None], 5) == []


def test_batches_are_drawn_by_seed():
    recipe = read_recipe(RECIPES / "hull.yaml", SMALL)
    first, second = build_task(recipe), build_task(recipe)
    one, other, next_ = first.epoch(3)[7], second.epoch(3)[7], first.epoch(3)[8]
    assert one.targets.equal(other.targets)
    assert one.inputs["points"].values.equal(other.inputs["points"].values)
    assert one.inputs["points"].values.shape != next_.inputs["points"].values.shape or not (
        one.inputs["points"].values.equal(next_.inputs["points"].values)
    )
    sizes = {first.epoch(0)[i].inputs["points"].values.shape[1] for i in range(20)}
    assert len(sizes) > 8
    assert 5 <= min(sizes) <= max(sizes) <= 50


def test_wrong_recipes_are_refused(tmp_path):
    for wrong, words in {
        "sizes=[9,5]": "no range",
        "model.head=vocabulary": "pointer",
        "encoder.summary=true": "nothing to point at",
        "encoder.heads=3": "shared out",
        "loss.label_smoothing=0.1": "label_smoothing",
    }.items():
        with pytest.raises(ConfigError, match=words):
            trained(tmp_path, "hull", wrong)


def test_the_command(runs, exports, tmp_path):
    (tmp_path / "points.txt").write_text("0,0 4,0 2,1 2,3\n\n0 0 1 0 0 1 output 1 2 3 1\n")
    lines = command("point", "-m", exports["tour"], "-i", tmp_path / "points.txt").split("\n")
    assert [sorted(line.split()) for line in lines] == [["0", "1", "2", "3"], ["0", "1", "2"], []]
    options = ("--random", "12", "--seed", "3", "--figure", tmp_path, "--figure-format")
    for kind in ("png", "svg", "gif"):
        out = command("point", "-m", exports["hull"], *options, kind)
        assert (tmp_path / f"1.{kind}").stat().st_size > 1000
    found = json.loads(
        command("point", "-m", exports["hull"], "--random", "12", "--seed", "3", "--json")
    )
    assert found["text"] == out.strip()
    assert len(found["points"]) == 12
    with pytest.raises(DataError, match="--random"):
        command("point", "-m", exports["hull"])
    with pytest.raises(DataError, match="no points"):
        command("point", "x y", "-m", exports["hull"])
    with pytest.raises(UserError, match="name a model"):
        command("point", "1 2 3 4")


def test_it_is_evaluated(runs, tmp_path):
    result = json.loads(command("evaluate", runs["hull"], "test.examples=20", "--json"))
    assert result["corpus"].keys() == {"exact", "area", "valid"}
    assert result["corpus"]["valid"] == 1
    low, high = result["intervals"]["area"]
    assert low <= result["corpus"]["area"] <= high
    (tmp_path / "test.txt").write_text("0 0 1 0 1 1 0 1 0.5 0.5 output 1 2 3 4 1\n")
    result = json.loads(
        command("evaluate", runs["hull"], "--json", "--data", tmp_path / "test.txt")
    )
    assert result["texts"].keys() == {"0"}
    command("evaluate", runs["hull"], "test.examples=3", "--report", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 5000
    for wrong in ("0 0 1 0 output 1 9 1", "0 0 1 output 1", "", "0 0 1 1"):
        (tmp_path / "wrong.txt").write_text(wrong)
        with pytest.raises(DataError, match=r"wrong\.txt"):
            published(tmp_path / "wrong.txt", "hull")


def test_it_is_served(exports):
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    served = load_models([f"{name}={exports[name]}" for name in ("hull", "sort")])
    with TestClient(Service(served).guard) as client:
        points = [[0, 0], [4, 0], [2, 1], [2, 3]]
        answer = client.post("/v1/point", json={"points": points, "model": "hull"}).json()
        assert answer["problem"] == "hull"
        assert set(answer["positions"]) <= {0, 1, 2, 3}
        answer = client.post("/v1/point", json={"points": points, "model": "sort"}).json()
        assert sorted(answer["positions"]) == [0, 1, 2, 3]
        for wrong in ([], [[]], [[1, 2, 3]], [[1], [1, 2]], "x", [[1e300, 0], [0, 0]]):
            refused = client.post("/v1/point", json={"points": wrong})
            assert 400 <= refused.status_code < 500, refused.text
        streamed = client.post("/v1/point", json={"points": points, "stream": True})
        assert "event: step" in streamed.text
        assert 'id="point-plane"' in client.get("/").text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("sort", 0.85), ("hull", 0.6)])
def test_a_small_network_learns(tmp_path, name, least):
    steps = ("training.steps=600", "training.evaluate_every=600", "batch=64", "model.hidden=64")
    run = trained(
        tmp_path, name, *steps, "encoder.hidden=32", "training.optimiser.learning_rate=0.005"
    )
    result = json.loads(command("evaluate", run, "--json"))["corpus"]
    assert result["valid"] == 1
    assert result["exact"] >= least
