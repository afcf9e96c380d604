"""METEOR against the original Java program, where Java and pycocoevalcap are installed.

`python tests/metrics/test_meteor_jar.py` scores the texts of `meteor_cases.json` with the jar
and writes its answers back into that file; every other test of METEOR then runs without Java.
"""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

CASES = Path(__file__).with_name("meteor_cases.json")
COUNTS = 21  # lengths, function words, matches and chunks: what Java and we both report

VOCABULARY = (
    "a a a the the of on in is to and with , . 's n't man men person people guy dog dogs puppy "
    "run runs running ran big large huge small street road sits sitting sat stand stands two 2 "
    "child children kid bicycle bike rides riding photo picture organization organized evening "
    "even c0 an é “ t-shirt u.s. 3.5 1,000 no. … colour color next to in front of a lot of many"
)


def run_jar(lines: list[str]) -> list[str]:
    """METEOR's answers to lines of its stdio protocol."""
    package = pytest.importorskip("pycocoevalcap")
    folder = Path(package.__path__[0]) / "meteor"
    command = "java -Dfile.encoding=UTF-8 -Xmx2G -jar meteor-1.5.jar - - -stdio -l en -norm"
    done = subprocess.run(
        command.split(), cwd=folder, input="\n".join([*lines, ""]).encode(), capture_output=True
    )
    return done.stdout.decode().splitlines()


def request(hypothesis: str, references: list[str]) -> str:
    """The line pycocoevalcap sends for one item."""
    hypothesis = hypothesis.replace("|||", "").replace("  ", " ")
    return " ||| ".join(("SCORE", " ||| ".join(references), hypothesis))


def random_items(seed: int, count: int) -> list[tuple[str, list[str]]]:
    """Texts with many repeated and related words: the search has to break ties all the time."""
    draw = random.Random(seed)
    vocabulary = VOCABULARY.split()

    def sentence(words: list[str], longest: int) -> str:
        return " ".join(draw.choices(words, k=draw.randint(0, longest)))

    items = []
    for _ in range(count):
        words = draw.sample(vocabulary, draw.randint(3, len(vocabulary)))
        longest = 150 if draw.random() < 0.03 else 25
        references = [sentence(words, longest) for _ in range(draw.randint(1, 4))]
        items.append((sentence(words, longest), references))
    return items


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_statistic_of_random_texts_equals_the_jars(seed: int) -> None:
    from sightline.metrics.meteor import Meteor

    items = random_items(seed, 1500)
    answers = run_jar([request(*item) for item in items])
    theirs = np.array([answer.split()[:COUNTS] for answer in answers], float)
    ours = Meteor().statistics([h for h, _ in items], [r for _, r in items])
    wrong = np.flatnonzero((theirs != ours[:, :COUNTS]).any(1))
    assert not len(wrong), [items[at] for at in wrong[:3]]


def write_answers() -> None:
    cases = json.loads(CASES.read_text())
    items = [(case["hypothesis"], case["references"]) for case in cases["items"]]
    counts = run_jar([request(*item) for item in items])
    *scores, corpus = run_jar([" ||| ".join(["EVAL", *counts])])
    for case, count, score in zip(cases["items"], counts, scores, strict=True):
        case["counts"] = [int(float(number)) for number in count.split()[:COUNTS]]
        case["score"] = float(score)
    cases["corpus"] = float(corpus)
    items_text = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases["items"])
    rest = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in cases.items()
        if key != "items"
    )
    CASES.write_text(f'{{{rest},\n"items": [\n{items_text}\n]}}\n')


if __name__ == "__main__":
    write_answers()
