"""`sightline score` on files: formats, output, and errors that name the item."""

import csv
import gzip
import json

import pytest
import typer
from typer.testing import CliRunner

from sightline.commands.score import score as command
from sightline.errors import UserError
from sightline.metrics import score

HYPOTHESES = {"1": "a dog runs", "2": "two cats sit on a mat", "3": "the man rides"}
REFERENCES = {
    "1": ["a dog is running", "the dog runs"],
    "2": ["cats sit on the mat", "two cats are sitting"],
    "3": ["a man rides a horse", "the man is riding"],
}
OTHERS = {"1": "a dog is running", "2": "a bird", "3": "a man rides a horse"}
app = typer.Typer()
app.command()(command)


def run(*arguments, metrics="bleu,rouge_l,cider"):
    options = ["--metrics", metrics] if metrics else []
    result = CliRunner().invoke(app, [*map(str, arguments), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def files(tmp_path):
    """The same captions as COCO JSON, JSONL, a manifest and plain text."""
    results = [{"image_id": int(i), "caption": text} for i, text in HYPOTHESES.items()]
    (tmp_path / "results.json").write_text(json.dumps(results))
    others = [{"image_id": int(i), "caption": text} for i, text in OTHERS.items()]
    (tmp_path / "others.json").write_text(json.dumps(others))
    annotations = [
        {"id": 100 * n + int(i), "image_id": int(i), "caption": texts[n]}
        for n in range(2)
        for i, texts in REFERENCES.items()
    ]
    coco = {"images": [{"id": int(i)} for i in REFERENCES], "annotations": annotations}
    (tmp_path / "annotations.json").write_text(json.dumps(coco))
    (tmp_path / "mapping.json").write_text(json.dumps(REFERENCES))
    lines = [json.dumps({"id": i, "text": text}) + "\n" for i, text in HYPOTHESES.items()]
    (tmp_path / "results.jsonl").write_text("".join(lines))
    lines = [json.dumps({"id": i, "targets": texts}) + "\n\n" for i, texts in REFERENCES.items()]
    (tmp_path / "references.jsonl").write_text("".join(lines))
    (tmp_path / "results.txt").write_text("\n".join(HYPOTHESES.values()) + "\n")
    for n in range(2):
        text = "\r\n".join(texts[n] for texts in REFERENCES.values())
        (tmp_path / f"references{n}.txt").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        ("results.json", ["annotations.json"]),
        ("results.json", ["mapping.json"]),
        ("results.jsonl", ["references.jsonl"]),
        ("results.txt", ["references0.txt", "references1.txt"]),
        ("results.txt", ["references.jsonl"]),
    ],
)
def test_every_format_gives_the_same_scores(files, hypotheses, references):
    out = run(files / hypotheses, *[files / name for name in references], "--json")
    content = json.loads(out)
    expected = score(HYPOTHESES, REFERENCES, ["bleu", "rouge_l", "cider"])
    assert list(content) == ["corpus", "signatures", "intervals"]
    for key in content:
        assert content[key] == expected[key]


def test_the_table_shows_scores_times_100(files):
    out = run(files / "results.json", files / "annotations.json")
    value = score(HYPOTHESES, REFERENCES, ["rouge_l"])["corpus"]["rouge_l"]
    assert "3 items, 6 references" in out
    assert f"{100 * value:.2f}" in out
    assert "ROUGE-L|beta:1.2" in out
    assert "interval" not in run(files / "results.json", files / "mapping.json", "--no-intervals")


def test_items_are_written_as_csv(files):
    run(files / "results.json", files / "annotations.json", "--per-item", files / "out.csv")
    with (files / "out.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    expected = score(HYPOTHESES, REFERENCES, ["cider"])["per_item"]
    assert {i: float(row["cider"]) for i, row in rows.items()} == {
        i: scores["cider"] for i, scores in expected.items()
    }


def test_two_systems_are_compared(files):
    arguments = files / "results.json", files / "annotations.json"
    out = run(*arguments, "--compare", files / "others.json", "--json")
    content = json.loads(out)["comparison"]
    mine, theirs = (
        score(h, REFERENCES, ["cider"])["corpus"]["cider"] for h in (HYPOTHESES, OTHERS)
    )
    assert content["difference"]["cider"] == pytest.approx(mine - theirs)
    assert content["corpus"]["cider"] == pytest.approx(theirs)
    low, high = content["intervals"]["cider"]
    assert low <= mine - theirs <= high
    assert "difference" in run(*arguments, "--compare", files / "others.json")


def test_a_subset_can_be_scored(files):
    (files / "few.json").write_text('[{"image_id": 2, "caption": "two cats"}]')
    with pytest.raises(UserError, match="'1' has references but no hypothesis"):
        run(files / "few.json", files / "annotations.json")
    out = run(files / "few.json", files / "annotations.json", "--subset")
    assert "1 item, 2 references" in out


def test_compressed_files_are_read_by_the_format_inside(files):
    for name in ("results.json", "annotations.json"):
        (files / f"{name}.gz").write_bytes(gzip.compress((files / name).read_bytes()))
    plain = run(files / "results.json", files / "annotations.json")
    assert run(files / "results.json.gz", files / "annotations.json.gz") == plain


def test_missing_meteor_is_said_in_one_line(files, monkeypatch):
    from sightline.metrics.meteor import index

    monkeypatch.setattr(index, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, [str(files / "results.json"), str(files / "mapping.json")])
    assert result.exit_code == 0
    assert "CIDEr" in result.output
    assert "pip install 'sightline-attention[meteor]'" in result.output.replace("\n", " ")


BAD = {
    "gone.json": (None, "no text file at"),
    "twice.json": ('[{"image_id": 1, "caption": "a"}, {"image_id": 1, "caption": "b"}]', "entry 2"),
    "two.jsonl": ('{"id": 1, "captions": ["a", "b"]}', "line 1: item '1' has 2 hypotheses"),
    "stranger.json": ('[{"image_id": 77, "caption": "a"}]', "'77' has a hypothesis but no"),
    "short.txt": ("a dog\n", "'2' has references but no hypothesis"),
    "long.txt": ("a\nb\nc\nd\n", "'4' has a hypothesis but no references"),
    "broken.json": ("[{", "not JSON"),
    "broken.jsonl": ('{"id": 1, "text": "a"}\n{"id"', "line 2: not JSON"),
    "empty.txt": ("", "no hypothesis"),
    "number.json": ("3", "expected a list"),
    "numbers.json": ("[3]", "entry 1: expected an object"),
    "nameless.jsonl": ('{"caption": "a"}', "line 1: there is no id"),
    "textless.jsonl": ('{"id": "x7"}', "'x7' has no text"),
    "null.json": ('[{"image_id": 1, "caption": null}]', "'1': expected a text"),
    "latin.txt": (b"caf\xe9\n", "not UTF-8"),
    "deep.json": ("[" * 100_000, "JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_say_where(files, name):
    content, said = BAD[name]
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (files / name).write_bytes(data)
    with pytest.raises(UserError, match=said):
        run(files / name, files / "mapping.json")


def test_a_mistake_is_one_line_and_exit_code_2(files, run_cli):
    (files / "stranger.json").write_text('[{"image_id": 77, "caption": "a"}]')
    result = run_cli("score", files / "stranger.json", files / "mapping.json", "--json")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "sightline: item '77' has a hypothesis but no references\n"


def test_reference_files_of_different_length_are_an_error(files):
    (files / "short.txt").write_text("a\nb\n")
    with pytest.raises(UserError, match=r"short\.txt: ends after line 2"):
        run(files / "results.txt", files / "references0.txt", files / "short.txt")


def test_an_empty_line_is_no_reference(files):
    (files / "gaps.txt").write_text("\n\nx\n")
    with pytest.raises(UserError, match="'1' has no references"):
        run(files / "results.txt", files / "gaps.txt")
    run(files / "results.txt", files / "references0.txt", files / "gaps.txt")


def test_a_csv_that_cannot_be_written_is_an_error(files):
    with pytest.raises(UserError, match="cannot be written"):
        run(files / "results.json", files / "mapping.json", "--per-item", files / "no" / "o.csv")


def test_odd_ids_and_lone_surrogates_pass_through(files):
    (files / "odd.json").write_text('{"\\ud800,\\n": "a \\udc00 dog"}')
    run(files / "odd.json", files / "odd.json", "--per-item", files / "odd.csv")
    with (files / "odd.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["id"] == "\\ud800,\n"
