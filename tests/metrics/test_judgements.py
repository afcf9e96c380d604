"""M1, M2 and agreement equal a count by hand, nltk's coefficients and published examples."""

import json

import pytest
from nltk.metrics.agreement import AnnotationTask

from sightline.errors import DataError
from sightline.metrics.judgements import (
    Judgement,
    Question,
    agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    read_judgements,
    shares,
    wilson,
)


def m1(item, answers, system="ours"):
    question = Question("m1", item, system, "a dog", "the dog runs")
    return [Judgement(question, judge, answer) for judge, answer in answers.items()]


def m2(item, answers, system="ours"):
    question = Question("m2", item, system, "a dog")
    return [Judgement(question, judge, answer) for judge, answer in answers.items()]


RECORDED = [
    *m1("1", {"anna": "better", "ben": "equal"}),
    *m1("2", {"anna": "worse", "ben": "worse"}),
    *m1("3", {"anna": "equal"}),
    *m1("4", {"anna": "worse"}),
    *m2("1", {"anna": "person", "ben": "machine"}),
    *m2("2", {"anna": "machine", "ben": "machine"}),
    *m2("3", {"anna": "machine"}),
    *m2("1", {"anna": "person", "ben": "person"}, "person"),
]


def test_a_recorded_set_gives_what_a_hand_count_gives():
    found = {(row["measure"], row["system"]): row for row in shares(RECORDED)}
    assert found["M1", "ours"]["share"] == 3 / 6  # better, equal, equal of six
    assert found["M1", "ours"]["answers"] == {"better": 1, "equal": 2, "worse": 3}
    assert found["M2", "ours"]["share"] == 1 / 5  # one of five taken for a person's
    assert found["M2", "person"]["share"] == 1.0
    assert found["M1", "ours"]["judges"] == 2
    assert found["M1", "ours"]["items"] == 4


def test_several_judgements_of_a_picture_do_not_narrow_its_interval():
    rows = shares(m1("1", dict.fromkeys("abcdefgh", "better")))
    assert rows[0]["interval"] == pytest.approx(wilson(1.0, 1))
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)  # Wilson's, by hand
    assert wilson(0.0, 10)[0] == 0
    assert wilson(0.0, 10)[1] == pytest.approx(0.2775, abs=1e-4)


TABLE = [
    {"a": "x", "b": "x", "c": "y"},
    {"a": "x", "b": "y", "c": "y"},
    {"a": "z", "b": "z", "c": "z"},
    {"a": "y", "b": "y", "c": "y"},
    {"a": "x", "b": "x", "c": "x"},
    {"a": "z", "b": "x", "c": "z"},
]


def test_coefficients_equal_nltks():
    task = AnnotationTask([(j, str(i), v) for i, row in enumerate(TABLE) for j, v in row.items()])
    pair = [(row["a"], row["b"]) for row in TABLE]
    assert cohen_kappa(pair) == pytest.approx(task.kappa_pairwise("a", "b"))
    assert krippendorff_alpha(TABLE) == pytest.approx(task.alpha())
    assert fleiss_kappa(TABLE) == pytest.approx(task.multi_kappa(), abs=0.05)  # Davies and Fleiss


def test_fleiss_kappa_of_his_own_kind_of_table():
    """Wikipedia's worked example: 14 raters, 10 subjects, κ = 0.210."""
    counts = """0 0 0 0 14
        0 2 6 4 2
        0 0 3 5 6
        0 3 9 2 0
        2 2 8 1 1
        7 7 0 0 0
        3 2 6 3 0
        2 5 3 2 2
        6 5 2 1 0
        0 2 2 3 7"""
    rows = []
    for line in counts.split("\n"):
        answers = [str(k) for k, n in enumerate(map(int, line.split())) for _ in range(n)]
        rows.append({str(judge): answer for judge, answer in enumerate(answers)})
    assert fleiss_kappa(rows) == pytest.approx(0.210, abs=5e-4)


def test_alpha_with_missing_answers():
    """Krippendorff's (2011) example of four observers and twelve units: nominal α = 0.743."""
    coders = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3"]
    coders += [". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]
    columns = zip(*(line.split() for line in coders), strict=True)
    rows = [{str(c): v for c, v in enumerate(unit) if v != "."} for unit in columns]
    assert krippendorff_alpha(rows) == pytest.approx(0.743, abs=5e-4)


def test_judges_who_never_met_have_no_agreement():
    found = agreement(RECORDED)
    assert [pair["both"] for pair in found["M1"]["cohen_kappa"]] == [2]
    assert agreement(m1("1", {"anna": "better"})) == {}
    assert cohen_kappa([("x", "x")]) is None  # chance explains all of it


def test_the_last_answer_of_a_judge_counts_and_half_a_line_does_not(tmp_path):
    first, second = m1("1", {"anna": "better"})[0], m1("1", {"anna": "worse"})[0]
    lines = [json.dumps(each.to_json()) for each in (first, second, first)]
    path = tmp_path / "judgements.jsonl"
    path.write_text(f"{lines[0]}\n{lines[1]}\n{lines[2][:30]}")
    assert read_judgements(path) == [second]
    path.write_text('{"kind": "m1"}\n')
    with pytest.raises(DataError, match=r"judgements.jsonl:1: not a judgement"):
        read_judgements(path)
    path.write_text(lines[0].replace("better", "good") + "\n")
    with pytest.raises(DataError, match="'good' is no answer"):
        read_judgements(path)
