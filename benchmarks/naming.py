"""Does a captioner name what it sees? Photos in folders of animals' names.

python -m benchmarks.naming FOLDER [MODEL]

FOLDER holds a folder of photos per animal, such as those of the public repository
InputBlackBoxOutput/popular-animals-dataset. A caption names the animal if it has its word, the
plural, or a kind of it. As the model ships; without `search.naming`; and without its tags, the
words that the encoder's classifier recognised.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import sightline
from benchmarks import machine
from sightline.data.features import pictures_in

KINDS = {
    "ape": "gorilla chimpanzee orangutan monkey baboon",
    "bear": "panda",
    "bison": "buffalo",
    "cat": "kitten",
    "chicken": "hen rooster",
    "cow": "bull ox cattle calf",
    "deer": "elk moose antelope",
    "dog": "puppy",
    "dolphin": "",
    "duck": "mallard",
    "eagle": "",
    "fish": "goldfish clownfish salmon",
    "horse": "pony foal",
    "lion": "",
    "lobster": "",
    "pig": "hog boar piglet",
    "rabbit": "bunny hare",
    "shark": "",
    "snake": "",
    "spider": "",
    "turkey": "",
    "wolf": "wolves",
}


def names_it(caption: str, animal: str) -> bool:
    words = [animal, *KINDS.get(animal, "").split()]
    forms = {form for word in words for form in (word, f"{word}s", f"{word}es")}
    return not forms.isdisjoint(caption.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", nargs="?", default="default")
    parser.add_argument("--captions", type=Path, help="write every caption to this file")
    given = parser.parse_args()
    print(machine.describe())
    model = sightline.load(given.model)
    folders = [p for p in sorted(given.folder.iterdir()) if p.is_dir() and p.name in KINDS]
    ways, shipped = ("as it ships", "no naming", "no tags"), model.codec.search
    named, total, written = dict.fromkeys(ways, 0), 0, []
    for folder in folders:
        photos = list(pictures_in(folder).values())
        total += len(photos)
        right = {}
        for way in ways:
            model.codec.search = replace(shipped, naming=0.0) if way == "no naming" else shipped
            texts = [d.text for d in model.describe(photos, tags=way != "no tags")]
            right[way] = sum(names_it(text, folder.name) for text in texts)
            named[way] += right[way]
            written += [
                {"photo": f"{folder.name}/{photo.name}", "way": way, "text": text}
                for photo, text in zip(photos, texts, strict=True)
            ]
        shares = (f"{way} {100 * right[way] / len(photos):5.1f} %" for way in ways)
        print(f"{folder.name:10} {len(photos):4} photos   {'   '.join(shares)}")
    shares = (f"{way} {100 * named[way] / total:.1f} %" for way in ways)
    print(f"named of {total} photos: {', '.join(shares)}")
    if given.captions:
        lines = "".join(json.dumps(each) + "\n" for each in written)
        given.captions.write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
