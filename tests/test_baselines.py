"""The benchmark of attention against its baselines, with tiny models: what it trains and prints."""

import importlib

import sightline
from sightline.cli import app
from sightline.data.manifest import read_split
from sightline.metrics import score


def test_three_models_are_trained_alike_in_three_steps_and_scored(
    shapes, tmp_path, monkeypatch, capsys
):
    _, recipe, _ = shapes
    benchmark = importlib.import_module("benchmarks.baselines")
    commands = []

    def run(*arguments):  # in this process, which saves importing torch again
        commands.append(list(map(str, arguments)))
        app(commands[-1], standalone_mode=False)

    monkeypatch.setattr(benchmark.trainings, "sightline", run)
    small = [
        *("encoder.name=efficientnet_lite2", "encoder.size=96", f"features={recipe.features}"),
        *("model.embedding=8", "model.hidden=12", "model.attention.size=8", "batching.size=16"),
        *("training.select=cider", "training.tensorboard=false", "search.beam=2"),
        *("training.steps=6", "training.evaluate_every=3", "training.schedule.warmup=0"),
    ]
    monkeypatch.setattr(benchmark, "SAME", small)
    monkeypatch.setattr(
        benchmark, "REWARD", ["self_critical=2", "model.dropout=0", "training.steps=3"]
    )
    given = [
        recipe.manifest,
        "default",
        "training.scheduled_sampling=0.5",
        "--out",
        str(tmp_path),
        "--seeds",
        "1",
        "2",
    ]
    monkeypatch.setattr("sys.argv", ["baselines", *given])
    benchmark.main()
    printed = capsys.readouterr().out.splitlines()

    assert [command[0] for command in commands] == ["train", "train", "average"] * 6
    for name in benchmark.MODELS:  # alike but for the recipe and the folders
        mine = [c for c in commands if any(f"{name}-2" in word for word in c)]
        same = [f"manifest={recipe.manifest}", "encoder.weights=default", given[2], *small]
        assert mine[0][:-2] == ["train", f"flickr8k-{name}", *same, "training.seed=2"]
        assert mine[1][-3] == f"training.initial={tmp_path / name}-2"
        assert mine[2] == ["average", *(f"{tmp_path / name}-2{end}" for end in ("", "", "-cider")),
                           "--out", f"{tmp_path / name}-2-mean"]  # fmt: skip

    examples = read_split(recipe.manifest, "test", "image")
    model = sightline.load(tmp_path / "show-and-tell-2-mean")
    described = model.describe([example.media for example in examples])
    texts = {e.id: d.text for e, d in zip(examples, described, strict=True)}
    expected = score(texts, {e.id: e.targets for e in examples}, ["bleu", "meteor", "cider"])
    rows = [
        line.split() for line in printed if line.startswith("show-and-tell") and "−" not in line
    ]
    assert [row[1] for row in rows] == ["1", "2", "mean"] * 3
    assert rows[7][2:] == [f"{100 * expected['corpus'][key]:.1f}" for key in benchmark.SHOWN]
    pairs = [line for line in printed if "−" in line]
    assert pairs == [
        "soft-paper − show-and-tell, seed 1",
        "soft-paper − show-and-tell, seed 2",
        "show-and-tell − vanilla, seed 1",
        "show-and-tell − vanilla, seed 2",
    ]

    commands.clear()
    benchmark.main()  # all is there: nothing is trained, and it prints the same
    assert commands == []
    again = capsys.readouterr().out.splitlines()
    assert [line for line in again if not line.endswith("is trained")][-50:] == printed[-50:]
