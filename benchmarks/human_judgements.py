"""Do the metrics agree with people? Kendall's τ-c with the expert judgements of Flickr8k.

    python -m benchmarks.human_judgements [flickr8k folder]

Three experts rated 5,822 pairs of a picture and a caption from 1 to 4 (Hodosh et al. 2013). The
usual protocol (Anderson et al. 2016; Hessel et al. 2021): the 158 pairs whose caption is one of the
picture's own references are skipped, each of the 16,992 ratings left is one item with the picture's
five captions as references, and τ-c is taken over all of them.

It also shows the CIDEr from which on a caption is right more often than not: two of its three
experts rated it 3 or 4 ("describes the image" with or without minor errors). That is the bar of
`TaskSpec.right` for captions, which a confidence is fitted to.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.data import data_path
from sightline.metrics import score

METRICS = ["bleu", "rouge_l", "cider", "cider_plain", "meteor"]
# Hessel et al. 2021 (CLIPScore, arXiv 2104.08718), table 1; METEOR, CIDEr and BLEU follow the SPICE
# paper's protocol.
PUBLISHED = {"bleu_1": 32.3, "bleu_4": 30.8, "rouge_l": 32.3, "meteor": 41.8, "cider": 43.9}


def judgements(folder: Path) -> tuple[dict, dict, np.ndarray]:
    """Candidates and references by rating, and the ratings."""
    captions: dict[str, list[str]] = {}
    for line in (folder / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        key, _, text = line.partition("\t")
        captions.setdefault(key.rpartition("#")[0], []).append(text)
    hypotheses, references, ratings = {}, {}, []
    for line in (folder / "ExpertAnnotations.txt").read_text(encoding="utf-8").splitlines():
        picture, caption, *values = line.split("\t")
        source, _, number = caption.rpartition("#")
        if source == picture:
            continue
        for expert, value in enumerate(values):
            hypotheses[picture, caption, expert] = captions[source][int(number)]
            references[picture, caption, expert] = captions[picture]
            ratings.append(int(value))
    return hypotheses, references, np.array(ratings)


def kendall_tau_c(scores: np.ndarray, ratings: np.ndarray) -> float:
    """Stuart's τ-c: 2 (concordant - discordant) / (n² (m - 1) / m), m the number of ratings."""
    levels = np.unique(ratings)
    groups = [np.sort(scores[ratings == level]) for level in levels]
    surplus = 0
    for low in range(len(groups)):
        for high in range(low + 1, len(groups)):
            below = np.searchsorted(groups[low], groups[high], side="left").sum()
            above = (
                len(groups[low]) * len(groups[high])
                - np.searchsorted(groups[low], groups[high], side="right").sum()
            )
            surplus += int(below) - int(above)
    distinct = min(len(levels), len(np.unique(scores)))
    return 2 * surplus / (len(scores) ** 2 * (distinct - 1) / distinct)


def rising(scores: np.ndarray, right: np.ndarray) -> list[tuple[float, float, int]]:
    """The share of right ones as a function of the score that never falls (isotonic regression).

    Steps: the least score, the share and the number of items of each.
    """
    steps: list[tuple[float, float, int]] = []
    for at in np.argsort(scores, kind="stable"):
        least, share, count = float(scores[at]), float(right[at]), 1
        while steps and steps[-1][1] >= share:  # pool adjacent violators
            least, before, size = steps.pop()
            share = (share * count + before * size) / (count + size)
            count += size
        steps.append((least, share, count))
    return steps


def show_bar(cider: np.ndarray, ratings: np.ndarray) -> None:
    right = (ratings.reshape(-1, 3) >= 3).sum(1) >= 2
    cider = cider.reshape(-1, 3)[:, 0]
    print(f"\n{len(right):,} captions, {right.mean():.1%} right by most of their three experts")
    for least, share, count in rising(cider, right):
        if count >= 30:
            print(f"CIDEr from {100 * least:5.1f}: {share:6.1%} of {count}")
    for least in (0.3, 0.4, 0.5, 0.6):
        above = right[cider >= least]
        print(f"CIDEr of at least {100 * least:.0f}: {above.mean():.1%} of {len(above)}")


def main() -> None:
    default = data_path("flickr8k")
    hypotheses, references, ratings = judgements(
        Path(sys.argv[1]) if len(sys.argv) > 1 else default
    )
    result = score(hypotheses, references, METRICS, intervals=False)
    print(f"{len(ratings):,} ratings by experts; Kendall τ-c × 100")
    print(f"{'metric':14} {'ours':>6} {'published':>10}")
    for key in result["corpus"]:
        values = np.array([scores[key] for scores in result["per_item"].values()])
        known = PUBLISHED.get(key)
        tau = 100 * kendall_tau_c(values, ratings)
        print(f"{key:14} {tau:6.1f} {f'{known:.1f}' if known else '–':>10}")
        if key == "cider":
            cider = values
    show_bar(cider, ratings)


if __name__ == "__main__":
    main()
