"""Someone who only needs the metrics: whatever file they have, and sacrebleu's letters."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

TEXTS = {"a.jpg": "a dog runs", "b.jpg": "two cats sit on a mat"}
KNOWN = {"a.jpg": ["a dog is running", "the dog runs"], "b.jpg": ["cats sit on the mat"]}


@pytest.fixture
def files(here):
    (here / "known.json").write_text(json.dumps(KNOWN))
    (here / "plain.json").write_text(json.dumps(TEXTS))
    rows = ["image,caption", *(f'{name},"{text}"' for name, text in TEXTS.items())]
    (here / "t.csv").write_text("\n".join(rows))
    (here / "t.tsv").write_text("\n".join(rows).replace(",", "\t").replace('"', ""))
    (here / "t.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    cocoeval = {name: [{"caption": text}] for name, text in TEXTS.items()}
    (here / "cocoeval.json").write_text(json.dumps(cocoeval))
    described = [{"file": f"photos/{n}", "text": t, "score": -1} for n, t in TEXTS.items()]
    (here / "described.jsonl").write_text("\n".join(map(json.dumps, described)))
    (here / "evaluated.json").write_text(json.dumps({"corpus": {"bleu_1": 1}, "texts": TEXTS}))
    table = [f"photos/{name},{text},-1,0.5," for name, text in TEXTS.items()]
    (here / "described.csv").write_text("\n".join(["file,text,score,confidence,error", *table]))
    rows = ["image,caption", *(f"{n},{text}" for n, texts in KNOWN.items() for text in texts)]
    (here / "known.csv").write_text("\n".join(rows))
    (here / "known_coco.json").write_text(
        json.dumps({n: [{"caption": text} for text in texts] for n, texts in KNOWN.items()})
    )
    return here


def test_every_file_gives_the_same_scores(typed, files):
    expected = typed("sightline score plain.json known.json -m bleu,cider --json").out
    assert json.loads(expected)["corpus"]["bleu_1"] > 0.5
    for name in (
        *("t.csv", "t.tsv", "t.csv.gz", "cocoeval.json", "described.jsonl", "evaluated.json"),
        "described.csv",
    ):
        assert typed(f"sightline score {name} known.json -m bleu,cider --json").out == expected
    for known in ("known.csv", "known_coco.json"):
        assert typed(f"sightline score t.csv {known} -m bleu -m cider --json").out == expected


@pytest.mark.parametrize("form", ["lines", "json", "jsonl"])
def test_standard_input_is_read_by_how_it_begins(typed, files, monkeypatch, form):
    texts = {
        "lines": "\n".join(TEXTS.values()),
        "json": json.dumps(TEXTS),
        "jsonl": (files / "described.jsonl").read_text(),
    }[form]
    (files / "lines.txt").write_text("a dog is running\ncats sit on the mat\n")
    known = "lines.txt" if form == "lines" else "known.json"
    stream = io.TextIOWrapper(io.BytesIO(texts.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    done = typed(f"sightline score - {known} -m bleu_1 --json")
    assert json.loads(done.out)["corpus"]["bleu_1"] > 0.4
    assert "only one file can be" in typed("sightline score - -", code=2).err


def test_the_letters_are_sacrebleus(typed, files):
    (files / "sys.txt").write_text("a dog runs\ntwo cats sit on a mat\n")
    (files / "ref.txt").write_text("a dog is running\ncats sit on the mat\n")
    done = typed("sightline score ref.txt -i sys.txt -m sacrebleu chrf -b -w 4", code=2)
    assert "chrf" in done.err  # a file of that name: metrics are joined by commas, or repeated
    done = typed("sightline score ref.txt -i sys.txt -m sacrebleu,chrf -b -w 4")
    numbers = done.out.split()
    assert [len(number.partition(".")[2]) for number in numbers] == [4, 4]
    import sacrebleu

    theirs = sacrebleu.corpus_chrf(
        ["a dog runs", "two cats sit on a mat"], [["a dog is running", "cats sit on the mat"]]
    )
    assert float(numbers[1]) == pytest.approx(theirs.score, abs=1e-4)


def test_several_systems_are_compared(typed, files):
    other = dict.fromkeys(TEXTS, "a cat")
    (files / "other.json").write_text(json.dumps(other))
    line = "sightline score t.csv known.json -m cider --compare other.json --compare plain.json"
    found = json.loads(typed(f"{line} --json").out)["comparisons"]
    assert [each["with"] for each in found] == ["other.json", "plain.json"]
    assert found[0]["difference"]["cider"] > 0
    assert found[1]["difference"]["cider"] == 0
    shown = typed(f"{line} -o table.txt")
    assert shown.out == ""
    table = (files / "table.txt").read_text()
    assert "2 items, 3 references, against other.json" in table
    assert "against plain.json" in table


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", "name,words\na,b\n", "no column of ids"),
        ("x.csv", "image,words\na,b\n", "no column for the text"),
        ("x.csv", "image,caption\n", "no rows below its header"),
        (
            "x.jsonl",
            '{"file": "a.jpg", "error": "a.jpg: no such file"}',
            "was not described: a.jpg",
        ),
        ("x.json", '{"a.jpg": [{"text": "a"}]}', "expected a text or a list"),
    ],
)
def test_what_is_missing_is_said(typed, files, name, content, said):
    (files / name).write_text(content)
    done = typed(f"sightline score {name} known.json -m bleu", code=2)
    assert said in done.err
    assert done.err.count("\n") == 1


def test_an_unknown_metric_reads_well(typed, files):
    done = typed("sightline score plain.json known.json -m spice", code=2)
    assert "there is no metric 'spice'. Known: " in done.err
