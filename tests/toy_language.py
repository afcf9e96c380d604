"""A toy language with its own words and word order, whose true alignments are known."""

import json

import numpy as np
from rich.console import Console

from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    OptimiserConfig,
    RecurrentConfig,
    ScheduleConfig,
    SearchConfig,
    TrainingConfig,
    VocabularyConfig,
)
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.loop import train

DETERMINERS = {"the": "ka", "a": "um", "every": "jolo"}
ADJECTIVES = {"red": "pira", "big": "gorru", "old": "velha", "quick": "snel", "tiny": "bitti"}
NOUNS = {
    "dog": "hundo", "cat": "mjau", "house": "casik", "tree": "arbo", "river": "fluvo",
    "bird": "pajar", "boy": "knab", "stone": "petra",
}  # fmt: skip
VERBS = {"sees": "vidat", "likes": "amat", "finds": "trovat", "paints": "pintat", "eats": "manat"}
PLACES = {"near": "nah", "behind": "retro", "without": "sen"}
TIMES = {"at": "om", "before": "pre", "after": "tras"}
MARKS = {".": ".", "!": "¡", "?": "¿"}
NAMES = ["Anna", "Bob", "Carla", "Dmitri", "Eva", "Femi", "Goro", "Hana", "Ivo", "Jun"]
NUMBERS = [str(number) for number in range(10, 40)]


def sentence(rng):
    """Source words, target words, and the links (source, target) between them."""
    source, target, links = [], [], []

    def phrase():
        words = [(str(rng.choice(list(DETERMINERS))), DETERMINERS)]
        if rng.random() < 0.5:
            words.append((str(rng.choice(list(ADJECTIVES))), ADJECTIVES))
        words.append((str(rng.choice(list(NOUNS))), NOUNS))
        start = len(source)
        source.extend(word for word, _ in words)
        order = [0, *range(len(words) - 1, 0, -1)]  # the adjective follows its noun
        return [(start + i, words[i][1][words[i][0]]) for i in order]

    said = phrase()
    verb = str(rng.choice(list(VERBS)))
    source.append(verb)
    at_end = (len(source) - 1, VERBS[verb])  # the verb comes last
    said += phrase()
    for copied, prepositions in ((NAMES, PLACES), (NUMBERS, TIMES)):
        if rng.random() < 0.6:  # near Anna → Anna nah
            word, preposition = str(rng.choice(copied)), str(rng.choice(list(prepositions)))
            source.extend([preposition, word])
            said += [(len(source) - 1, word), (len(source) - 2, prepositions[preposition])]
    mark = str(rng.choice(list(MARKS)))
    source.append(mark)
    for place, word in [*said, at_end, (len(source) - 1, MARKS[mark])]:
        links.append((place, len(target)))
        target.append(word)
    return source, target, links


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    return [sentence(rng) for _ in range(count)]


def write_manifest(path, train=1500, dev=60, test=60):
    """Held-out sentences are new ones."""
    seen = set()
    lines = []
    for split, count, seed in (("train", train, 0), ("dev", dev, 1), ("test", test, 2)):
        for number, (source, target, _) in enumerate(sentences(count, seed)):
            text = " ".join(source)
            if split != "train" and text in seen:
                continue
            seen.add(text)
            line = {"id": f"{split}-{number}", "source": text, "split": split}
            lines.append(json.dumps({**line, "targets": [" ".join(target)]}))
    path.write_text("\n".join(lines) + "\n")


def recipe(manifest, kind="word", steps=250, **changes):
    """Words with an LSTM, pieces with a GRU: the two ways that the decoder has for its loop."""
    word = kind == "word"
    vocabulary = VocabularyConfig(kind, size=1000 if word else 420)
    settings = {
        "source": vocabulary,
        "target": vocabulary,
        "batching": BatchingConfig("token_budget", 1200 if word else 800),
        "encoder": RecurrentConfig(embedding=32, hidden=48),
        "model": DecoderConfig(
            cell="lstm" if word else "gru",
            embedding=32,
            hidden=64,
            gate=False,
            attention=AttentionConfig(size=48),
        ),
        "search": SearchConfig(beam=3, max_length=60, length_penalty=1.0),
        "training": TrainingConfig(
            steps=steps,
            evaluate_every=max(1, steps // 2),
            select="sacrebleu",
            tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=1e-2, clip_norm=1.0),
            schedule=ScheduleConfig("cosine", warmup=10),
        ),
    }
    return TranslateRecipe(manifest=str(manifest), **{**settings, **changes})


def train_toy(folder, **options):
    """Train a translator of the toy language into folder/run."""
    manifest = folder / "toy.jsonl"
    if not manifest.exists():
        write_manifest(manifest)
    data = TranslationData(recipe(manifest, **options))
    return train(data, folder / "run", console=Console(quiet=True))
