"""How a reader of stories fares on a hundred small ones in bAbI's manner but not of bAbI.

    python -m benchmarks.other_stories babi

Five kinds, twenty each, drawn by seed: names, places and things that bAbI has and some that it has
not. Prints how many of each kind are answered right, and what was wrong.
"""

from __future__ import annotations

import argparse
import random

import sightline

PEOPLE = ["Mary", "John", "Sandra", "Daniel", "Fred", "Bill", "Anna", "Peter"]
PLACES = ["kitchen", "garden", "office", "bathroom", "hallway", "bedroom", "school", "park"]
PLACES += ["cinema", "Paris"]
THINGS = ["apple", "football", "milk", "book", "phone"]
KINDS = ("where somebody is", "where a thing is", "yes or no", "who was given it", "how many")


def story(kind: int, random: random.Random) -> tuple[list[str], str]:
    """The facts with the question, and the answer."""
    a, b = random.sample(PEOPLE, 2)
    first, second, third = random.sample(PLACES, 3)
    thing = random.choice(THINGS)
    if kind == 0:
        facts = [f"{a} went to the {first}.", f"{b} travelled to the {second}."]
        return [*facts, f"{a} moved to the {third}.", f"Where is {a}?"], third
    if kind == 1:
        facts = [f"{a} got the {thing}.", f"{a} went to the {first}.", f"{b} went to the {second}."]
        return [*facts, f"Where is the {thing}?"], first
    if kind == 2:
        facts = [f"{a} is in the {first}.", f"{b} is not in the {first}."]
        return [*facts, f"Is {b} in the {first}?"], "no"
    if kind == 3:
        facts = [f"{a} took the {thing}.", f"{a} gave the {thing} to {b}."]
        return [*facts, f"Who has the {thing}?"], b
    facts = [f"{a} took the {thing} there.", f"{a} left the {thing}."]
    return [*facts, f"How many objects is {a} carrying?"], "none"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.other_stories")
    parser.add_argument("model")
    model = sightline.load(parser.parse_args().model)
    draw = random.Random(5)
    for kind, name in enumerate(KINDS):
        asked = [story(kind, draw) for _ in range(20)]
        found = model.describe(["\n".join(lines) for lines, _ in asked])
        right = [d.text.lower() == a.lower() for d, (_, a) in zip(found, asked, strict=True)]
        print(f"{name}: {sum(right)} of 20")
        for good, d, (lines, answer) in zip(right, found, asked, strict=True):
            if not good:
                print(f"    {' '.join(lines)} → {d.text} ({answer})")


if __name__ == "__main__":
    main()
