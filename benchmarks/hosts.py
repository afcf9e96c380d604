"""Two network namespaces as two machines: `torchrun --nnodes=2` between their addresses.

    python -m benchmarks.hosts [--out FOLDER]      (as root)

Each has its own address, loopback and ports, and sees the other through one link; the second host's
process has no run folder of its own to write to. Compares the weights with those of one process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.distributed import flat, trainings
from sightline import config
from sightline.tasks import build_task

HOSTS = {"sightline-a": "10.77.0.1", "sightline-b": "10.77.0.2"}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def connect() -> None:
    a, b = HOSTS
    ip("link", "add", "sl-a", "type", "veth", "peer", "name", "sl-b")
    for host, link in ((a, "sl-a"), (b, "sl-b")):
        ip("netns", "add", host)
        ip("link", "set", link, "netns", host)
        ip("-n", host, "addr", "add", f"{HOSTS[host]}/24", "dev", link)
        ip("-n", host, "link", "set", "lo", "up")
        ip("-n", host, "link", "set", link, "up")


def remove() -> None:
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], stderr=subprocess.DEVNULL)


def torchrun(rank: int, recipe: Path, out: Path) -> subprocess.Popen[bytes]:
    host = list(HOSTS)[rank]
    command = ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run"]
    command += ["--nnodes=2", "--nproc-per-node=1", f"--node-rank={rank}"]
    command += [f"--master-addr={HOSTS['sightline-a']}", "--master-port=29500"]
    command += ["-m", "sightline", "train", str(recipe), "-q", "-o", str(out)]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": f"sl-{'ab'[rank]}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts")
    parser.add_argument("--out", type=Path, default=Path("runs/hosts"))
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    recipe = trainings(out, 50)["translation"]
    path = out / "recipe.yaml"
    path.write_text(config.to_yaml(replace(recipe, training=replace(recipe.training, keep=1))))
    train = [sys.executable, "-m", "sightline", "train", str(path), "-q", "-o", str(out / "one")]
    subprocess.run(train, check=True)
    remove()
    try:
        connect()
        runs = [torchrun(rank, path, out / f"host-{rank}") for rank in range(2)]
        codes = [run.wait() for run in runs]
    finally:
        remove()
    first, one = flat(build_task(recipe)), flat(out / "one")
    two = flat(out / "host-0")
    apart = float((two - one).norm() / (one - first).norm())
    wrote = (out / "host-1").exists()
    print(f"exit codes {codes}, apart {apart:.1e}; the second host wrote: {wrote}")


if __name__ == "__main__":
    main()
