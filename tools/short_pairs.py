"""Pairs of manythings.org that may be trained on: none of a sentence that is held out.

    python tools/short_pairs.py deu.txt tatoeba de deu-eng.txt short

`deu.txt` has English, a tab, the translation; `tatoeba` is the folder of {train,dev}.en-de.tsv.gz;
`deu-eng.txt` has the lines of the Tatoeba Challenge's test and dev files (language, language, text,
text). Left out are pairs with a side that is in dev, or in the challenge's files but not in train,
whatever its case and punctuation; and pairs that are in train. Writes `short.en` and `short.de`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sightline.data.sentences import clean
from sightline.media.text import read_lines


def plain(text: str) -> str:
    return " ".join(re.sub(r"\W+", " ", clean(text)).lower().split())


def pairs_of(folder: Path, split: str, language: str) -> list[tuple[str, str]]:
    lines = read_lines(folder / f"{split}.en-{language}.tsv.gz")
    return [(plain(a), plain(b)) for a, b in (line.split("\t") for line in lines)]


def main(pairs: Path, folder: Path, language: str, challenge: Path, out: str) -> None:
    train, dev = (pairs_of(folder, split, language) for split in ("train", "dev"))
    held_out = {side for pair in dev for side in pair}
    known = {english for english, _ in train}
    for line in challenge.read_text("utf-8").splitlines():
        first, _, *texts = line.split("\t")
        sides = [plain(text) for text in (texts if first == "eng" else reversed(texts))]
        if len(sides) == 2 and sides[0] not in known:
            held_out |= {*sides}
    seen, kept = {*train}, []
    for line in pairs.read_text("utf-8").splitlines():
        english, translation = (side.strip() for side in [*line.split("\t"), "", ""][:2])
        pair = plain(english), plain(translation)
        if all(pair) and not english.isdigit() and not held_out & {*pair} and pair not in seen:
            seen.add(pair)
            kept.append((english, translation))
    for name, side in (("en", 0), (language, 1)):
        Path(f"{out}.{name}").write_text("".join(f"{pair[side]}\n" for pair in kept), "utf-8")
    print(f"{len(kept):,} pairs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5])
