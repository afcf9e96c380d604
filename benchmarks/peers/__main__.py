"""Beside the peers: the same work, by Sightline and by what users would take in its place.

    python -m benchmarks.peers [--env FOLDER] [--pairs 4000] [--sentences 128] [--repeats 2]

Installs joeynmt, CTranslate2 and pycocoevalcap from PyPI into FOLDER, an environment beside this
one whose PyTorch it uses. Models are untrained, of multi30k-en-de's sizes; sentences and batches
are Multi30k's, the same tokens for all; outputs have 16 tokens. Each system runs in processes of
its own, in turns, on one thread; times are CPU seconds, so that other work on the machine counts
little. Of several repeats the best counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from benchmarks.data import data_path
from benchmarks.peers.work import BATCH, WRITTEN
from sightline import config
from sightline.commands.recipes import SHIPPED
from sightline.data.manifest import Example, write_manifest
from sightline.export.write import _write
from sightline.media.text import read_lines
from sightline.tasks import build_task, load_model, read_recipe
from sightline.training import checkpoint as files

# joeynmt asks for an old protobuf, and for linters: what it imports is named here
PEERS = ["pandas", "plotly", "sentencepiece", "subword-nmt", "sacremoses", "datasets", "packaging"]
PEERS += ["importlib_metadata", "ctranslate2", "pycocoevalcap"]
ROOT = Path(__file__).resolve().parents[2]


def install(folder: Path) -> Path:
    """An environment that has ours below it; its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        below = folder / "lib" / version / "site-packages" / "below.pth"
        below.write_text(sysconfig.get_path("purelib") + "\n")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *PEERS], check=True)
    subprocess.run([*pip, "--no-deps", "joeynmt"], check=True)
    return python


def prepare(folder: Path, pairs: int, sentences: int) -> None:
    """The work as tokens, and an untrained model with its exports."""
    lines = {}
    for name, count in (("train", pairs), ("val", 100)):
        sides = (read_lines(data_path("multi30k", f"{name}.{side}.gz")) for side in ("en", "de"))
        lines[name] = list(zip(*sides, strict=True))[:count]
    examples = [
        Example(id=f"{name}-{i}", source=source, targets=(target,), split=split)
        for name, split in (("train", "train"), ("val", "dev"))
        for i, (source, target) in enumerate(lines[name])
    ]
    write_manifest(folder / "pairs.jsonl", examples)
    manifest = f"manifest={folder / 'pairs.jsonl'}"
    recipe: Any = read_recipe(SHIPPED / "multi30k-en-de.yaml", [manifest])
    recipe = replace(
        recipe,
        search=replace(recipe.search, max_length=WRITTEN),
        encoder=replace(recipe.encoder, dropout=0.0),
        model=replace(recipe.model, dropout=0.0),  # so that no framework's dropout is compared
    )
    task: Any = build_task(recipe)
    torch.manual_seed(0)
    model = task.build_model()
    untrained = folder / "untrained"
    untrained.mkdir(exist_ok=True)
    for name, text in {"config.yaml": config.to_yaml(recipe), **task.files}.items():
        (untrained / name).write_text(text)
    files.save_file(files.savable(model.state_dict()), untrained / files.WEIGHTS)
    loaded = load_model(untrained)
    for kind in ("int16", "int8"):  # an untrained model's texts would not pass the check of int8
        shutil.rmtree(folder / kind, ignore_errors=True)
        (folder / kind).mkdir()
        _write(folder / kind, untrained, loaded, kind, kind)
    some = sorted(task.pairs[: 6 * BATCH], key=lambda pair: len(pair[1]))
    batches = [some[i : i + BATCH] for i in range(0, len(some), BATCH)]
    kept = [(text, pair) for (text, _), pair in zip(lines["train"], task.pairs, strict=False)]
    work = {
        "source": len(task.source_language.vocab),
        "target": len(task.target_language.vocab),
        "batches": [[[s for s, _ in batch], [t for _, t in batch]] for batch in batches],
        "tokens": sum(len(target) - 1 for _, target in some),
        "texts": [text for text, _ in kept[:sentences]],
        "sources": [source for _, (source, _) in kept[:sentences]],
        "singly": 16,
    }
    (folder / "work.json").write_text(json.dumps(work))


def run(python: Path, module: str, *arguments: str) -> dict[str, float]:
    """A peer's own process: what it prints, with the process's seconds and memory."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, **threads, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    began = time.perf_counter()
    process = subprocess.Popen(
        [python, "-m", f"benchmarks.peers.{module}", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    said, errors = process.communicate()
    if process.returncode:
        print(f"{module} {' '.join(arguments[1:])} failed:\n{errors[-800:]}", flush=True)
        return {}
    # CPU seconds of it and of what it started, which communicate() has waited for
    now = os.times()
    cpu = now.children_user + now.children_system
    found: dict[str, float] = {"wall": time.perf_counter() - began, "cpu_so_far": cpu}
    last = said.strip().splitlines()[-1] if said.strip() else ""
    return found | (json.loads(last) if last.startswith('{"') else {})


def measure(
    python: Path, folder: Path, repeats: int, only: str = ""
) -> dict[str, dict[str, float]]:
    work, found = str(folder / "work.json"), dict[str, dict[str, float]]()
    turns: list[tuple[str, str, str, list[str]]] = [
        ("Sightline", "train", "ours", ["train"]),
        ("joeynmt 2.3", "train translate", "joey", []),
        ("plain PyTorch", "train", "plain", []),
        ("Sightline", "translate", "ours", ["int16"]),
        ("Sightline, int8", "translate", "ours", ["int8"]),
        ("CTranslate2, float32", "translate", "transformer", ["float32"]),
        ("CTranslate2, int8", "translate", "transformer", ["int8"]),
        ("Sightline", "first", "ours", ["int16", "first"]),
        ("joeynmt 2.3", "first", "joey", ["first"]),
        ("CTranslate2, float32", "first", "transformer", ["float32", "first"]),
        ("CTranslate2, int8", "first", "transformer", ["int8", "first"]),
        ("Sightline", "metrics", "ours", ["metrics"]),
        ("pycocoevalcap", "metrics", "coco", []),
    ]
    for _ in range(repeats):
        for name, what, module, more in turns:
            if only not in what:
                continue
            before = sum(os.times()[2:4])
            got = run(python, module, work, *more)
            if not got:
                continue
            cpu = got.pop("cpu_so_far") - before
            wall = got.pop("wall")
            if what in ("first", "metrics"):
                got = {what: cpu, f"{what}_wall": wall}
            if "memory" in got:
                got[f"memory_{'train' if 'training' in got else 'run'}"] = got.pop("memory")
            mine = found.setdefault(name, {})
            for key, value in got.items():
                best = max if key in ("training", "weights") else min
                mine[key] = best(value, mine.get(key, value))
            print(f"{name}: {json.dumps(got)}", flush=True)
    return found


ROWS = [
    ("training", "training, target tokens a second", "{:,.0f}", 1.0),
    ("batched", f"translation in batches of {BATCH}, ms a sentence", "{:.1f}", 1000.0),
    ("singly", "translation one by one, ms a sentence", "{:.1f}", 1000.0),
    ("first", "from start to first answer, CPU s", "{:.2f}", 1.0),
    ("metrics", "metrics of 1,000 captions, CPU s", "{:.1f}", 1.0),
    ("memory_train", "memory at most, training, MB", "{:,.0f}", 1.0),
    ("memory_run", "memory at most, translating, MB", "{:,.0f}", 1.0),
    ("weights", "weights, millions", "{:.1f}", 1e-6),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--env", type=Path, default=Path.home() / ".cache" / "sightline-peers")
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="train, translate, first or metrics")
    given = parser.parse_args()
    python = install(given.env / "env")
    prepare(given.env, given.pairs, given.sentences)
    print(machine.describe(), flush=True)
    found = measure(python, given.env, given.repeats, given.only)
    print("\n| |" + "".join(f" {name} |" for name in found))
    print("|---|" + "---:|" * len(found))
    for key, label, form, factor in ROWS:
        cells = (form.format(row[key] * factor) if key in row else "" for row in found.values())
        print(f"| {label} |" + "".join(f" {cell} |" for cell in cells))


if __name__ == "__main__":
    main()
