"""Which words of a picture's captions name a thing that another picture has not."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.data.manifest import normalise_caption

# Things that Flickr8k's captions name, by kind: two pictures that share a kind cannot be told
# apart by its words.
KINDS = [
    set(kind.split())
    for kind in (
        "man men guy boy boys woman women lady girl girls person people child children kid kids "
        "baby toddler crowd group player players couple family friends skier snowboarder surfer "
        "climber hiker biker cyclist skateboarder rider swimmer runner dancer team",
        "dog dogs puppy puppies poodle greyhound greyhounds terrier animal animals",
        "horse horses cow cows sheep goat",
        "bird birds duck ducks seagull seagulls",
        "water ocean lake sea river wave waves pool pond creek stream surf surfboard beach shore "
        "splash fountain swimming boat canoe kayak raft",
        "snow ski skis snowboard ice",
        "grass field lawn meadow yard",
        "tree trees forest woods log leaves branch branches",
        "mountain mountains hill hills cliff rock rocks",
        "sand beach desert dune dunes shore",
        "bike bikes bicycle bicycles motorcycle motorbike dirtbike wheel",
        "car cars truck bus van vehicle",
        "ball balls football soccer basketball volleyball baseball tennis racket",
        "skateboard ramp rail skates",
        "building buildings house wall city street sidewalk road",
        "camera cameras",
        "swing slide playground trampoline",
        "frisbee",
        "fence gate",
        "stairs steps staircase",
        "bench chair couch table",
        "guitar instrument drums microphone",
        "stick sticks",
    )
]


def own_words(mine: Sequence[str], others: Sequence[str]) -> set[str]:
    """Words for things that at least two of my captions name, and none of the others'."""
    here = [set(normalise_caption(text).split()) for text in mine]
    there = {word for text in others for word in normalise_caption(text).split()}
    return {
        word
        for kind in KINDS
        if not there & {w for k in KINDS if k & kind for w in k}
        and sum(bool(words & kind) for words in here) >= 2
        for word in kind
        if any(word in words for words in here)
    }
