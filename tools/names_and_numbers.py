"""Pairs to learn copying from: other names and numbers in the place of those on both sides.

    python tools/names_and_numbers.py train.en train.de names.en names.de

Everyday sentences have Tom and Mary, and a translator trained on them alone misspells the names of
others. Of the new names half are common ones, half are made of syllables. Files are given without
their duplicates; the seed is 1.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from sightline.media.text import read_lines

MOST = 9000  # pairs with names; those with numbers are all taken, three times
REPLACED = """
Tom Mary John Sami Layla Alice Bob Ken Jim Bill Mike Nancy Jack Jane Tony Boston Ziri Yanni
Marie Jackson Peter Paul Anna Kate Lucy Emily Dan Linda Fadil Mennad Skura Rima Taro Susan
Ann Jill Betty Meg Kumi Emi Tomoko Smith Brown Johnson Brian Fred Henry George Robert David
Roger Judy Bush Lincoln Kennedy Chris Beth Ted Carol Dick Nick Sue Lisa Maria
""".split()  # noqa: SIM905
COMMON = """
James Robert Michael William David Richard Joseph Thomas Charles Daniel Matthew Anthony Mark
Steven Andrew Joshua Kevin Brian Edward Ronald Timothy Jason Jeffrey Ryan Jacob Gary
Nicholas Eric Jonathan Stephen Larry Justin Scott Brandon Benjamin Samuel Patricia Jennifer
Elizabeth Barbara Jessica Sarah Karen Sandra Ashley Emily Donna Michelle Amanda Melissa
Deborah Stephanie Rebecca Sharon Laura Cynthia Amy Angela Nicole Emma Olivia Sophia Isabella
Charlotte Priya Ahmed Mohammed Fatima Yuki Hiroshi Wei Chen Nguyen Garcia Rodriguez Martinez
Hernandez Lopez Wilson Anderson Taylor Moore Martin Lee Thompson White Harris Clark Lewis
Walker Hall Young King Wright Hill Green Adams Baker Nelson Carter Mitchell Roberts Turner
Phillips Campbell Parker Evans Edwards Collins Obama Merkel Einstein Schmidt Müller Meyer
Weber Wagner Becker Hoffmann Koch Dupont Bernard Moreau Laurent Simon Lefebvre Michel Novak
Svoboda Kowalski Rossi Silva Santos Kumar Singh Patel Khan Ali Hassan Ibrahim Kim Park
Tanaka Suzuki Sato
""".split()  # noqa: SIM905
VOWELS = "aeiou"
CONSONANTS = """
b c d f g h j k l m n p r s t v w y z sh ch th br st tr kr gr pr mb nd rn ll tt
""".split()  # noqa: SIM905


def syllable() -> str:
    begin, vowel = random.choice(CONSONANTS[:19]), random.choice(VOWELS)
    return begin + vowel + (random.choice(CONSONANTS) if random.random() < 0.5 else "")


def name() -> str:
    if random.random() < 0.5:
        return random.choice(COMMON)
    made = "".join(syllable() for _ in range(random.choice((1, 2, 2, 3))))
    return made.capitalize() + (random.choice(VOWELS) if random.random() < 0.2 else "")


def number(like: str) -> str:
    digits = len(like)
    if digits == 4 and like[:2] in ("18", "19", "20"):  # a year
        return str(random.randint(1500, 2050))
    return str(random.randint(10 ** (digits - 1) if digits > 1 else 2, 10**digits - 1))


def word(text: str) -> str:
    return rf"\b{text}\b"


def digits(text: str) -> str:
    return rf"(?<!\d){text}(?!\d)"


def replaced(pair: tuple[str, str], names: set[str], numbers: set[str]) -> tuple[str, str]:
    source, target = pair
    for old in sorted(names):
        new = name()
        new += f" {name()}" if random.random() < 0.15 else ""
        source, target = (re.sub(word(old), new, side) for side in (source, target))
    others = {old: number(old) for old in sorted(numbers)}
    for old in sorted(others, key=len, reverse=True):
        source, target = (re.sub(digits(old), others[old], side) for side in (source, target))
    return source, target


def main(source: Path, target: Path, out_source: Path, out_target: Path) -> None:
    random.seed(1)
    with_names, with_numbers = [], []
    for pair in zip(read_lines(source), read_lines(target), strict=True):
        english, other = pair
        found = {w for w in re.findall(r"\b[A-Z][a-z]+\b", english) if w in REPLACED}
        names = {w for w in found if re.search(word(w), other)}
        numbers = {n for n in re.findall(r"\d+", english) if re.search(digits(n), other)}
        if names or numbers:
            (with_numbers if numbers else with_names).append((pair, names, numbers))
    random.shuffle(with_names)
    made = [replaced(*each) for each in with_names[:MOST] + with_numbers * 3]
    pairs = list(dict.fromkeys(made))
    random.shuffle(pairs)
    out_source.write_text("".join(f"{pair[0]}\n" for pair in pairs), "utf-8")
    out_target.write_text("".join(f"{pair[1]}\n" for pair in pairs), "utf-8")
    print(f"{len(pairs):,} pairs")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]))
