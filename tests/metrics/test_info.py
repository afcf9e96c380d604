"""How scores are shown and compared is said once, on the metric."""

import math
from dataclasses import replace

import pytest

from sightline import metrics
from sightline.errors import UserError
from sightline.metrics import info, scoring
from sightline.metrics.error_rate import ErrorRate


@pytest.mark.parametrize(
    ("key", "value", "shown", "higher_is_better"),
    [
        ("bleu_4", 0.21337, "BLEU-4 21.34", True),
        ("bleu_4_nobp", 0.2, "BLEU-4 (no BP) 20.00", True),
        ("meteor", 0.189, "METEOR 18.90", True),
        ("rouge_l", 0.5, "ROUGE-L 50.00", True),
        ("cider", 0.6469, "CIDEr 64.69", True),
        ("sacrebleu", 38.1, "BLEU (sacreBLEU) 38.10", True),
        ("chrf", 60.0, "chrF2 60.00", True),
        ("wer", 0.125, "WER 12.50", False),
        ("per", 0.1, "PER 10.00", False),
        ("aer", 0.08, "AER 8.00", False),
        ("loss", 1.23456, "Loss (nats) 1.2346", False),
        ("bits", 1.5, "Bits 1.5000", False),
        ("perplexity", 7.0, "Perplexity 7.000", False),
        ("exact", 0.75, "Exact match 75.00", True),
        ("gradient_norm", 0.00012345, "Gradient norm 0.0001234", True),
    ],
)
def test_each_score_has_a_label_a_scale_and_a_direction(key, value, shown, higher_is_better):
    about = info(key)
    assert f"{about.label} {about.show(value)}" == shown
    assert about.higher_is_better is higher_is_better


def test_what_is_no_number_is_a_dash_and_a_difference_has_its_sign():
    assert info("cider").show(math.nan) == info("loss").show(math.inf) == "–"
    assert info("cider").show(0.01, sign=True) == "+1.00"


def test_what_an_export_may_lose_is_in_shown_units():
    tolerances = {key: about.tolerance for key, about in scoring._INFO.items() if about.tolerance}
    assert tolerances == {
        "cider": {"int16": 0.05, "int8": 0.3},
        "bleu_4": {"int16": 0.05, "int8": 0.2},
        "sacrebleu": {"int16": 0.05, "int8": 0.2},
        "loss": {"int16": 0.001, "int8": 0.01},
        "accuracy": {"int16": 0.5, "int8": 1.0},
        "bracket_f1": {"int16": 0.1, "int8": 0.5},
        "per": {"int16": 0.2, "int8": 0.5},
        "wer": {"int16": 0.2, "int8": 0.5},
    }


def test_a_metric_is_added_in_one_line(monkeypatch):
    for table in ("_METRICS", "_INFO", "_KEYS"):
        monkeypatch.setattr(scoring, table, dict(getattr(scoring, table)))
    metrics.register("cer", lambda _: ErrorRate("cer"))
    assert info("cer") == replace(info("per"), label="CER")
    assert metrics.score({1: "a b"}, {1: ["a c"]}, ["cer"])["corpus"] == {"cer": 0.5}


def test_an_unknown_metric_is_said_with_what_is_known():
    with pytest.raises(UserError, match=r"no metric 'spice'\. Known: bleu, bleu_nobp, meteor"):
        metrics.score({1: "a"}, {1: ["a"]}, ["spice"])
    with pytest.raises(UserError, match=r"no metric 'CIDERR'; did you mean 'cider'\? Known: bleu"):
        metrics.score({1: "a"}, {1: ["a"]}, ["CIDERR"])
