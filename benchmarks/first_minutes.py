"""The first minutes of a newcomer: from a clone to a first result, an own model and a profile.

    .venv/bin/python benchmarks/first_minutes.py [--short] [COMMIT ...]

Each COMMIT (HEAD without one) is cloned to an empty folder, with an empty cache, and the commands of the README run
there, without a terminal. Given two commits, before and after stand side by side. A row has the seconds of its step,
the seconds since the clone began, the processor's seconds, and the megabytes that the machine's network interfaces
received meanwhile, of all its programs. Debian's packages stay installed, and wheels that pip finds on this machine
are not downloaded: their time and bytes are missing. --short installs nothing: the clone gets the environment that
runs this with its cache, and runs a ready program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
MODEL = """import torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1568, 4))
example_inputs = (torch.rand(1, 3, 16, 16),)
"""
SDK = ".venv/bin/ethosu-sdk"
STEPS: dict[str, Sequence[str]] = {
    "git clone": ("git", "clone", "-q", "{root}", "."),
    "git checkout": ("git", "checkout", "-q", "{commit}"),
    "scripts/setup": ("scripts/setup",),
    "scripts/quickstart (first result)": ("scripts/quickstart",),
    "run my.py (first own model)": (SDK, "run", "../my.py", "-o", "own"),
    "profile of it (first profile)": (SDK, "profile", "own/my.pte", "-o", "profile"),
    "run of a ready .pte, cold": (SDK, "run", "own/my.pte", "-o", "cold"),
    "run of a ready .pte, warm": (SDK, "run", "own/my.pte", "-o", "cold"),
}
SHORT: dict[str, Sequence[str]] = {
    "git clone": STEPS["git clone"],
    "git checkout": STEPS["git checkout"],
    "environment": ("ln", "-s", sys.prefix, ".venv"),
    "run of a ready .pte": (SDK, "run", "tests/golden/pte/add_u55.pte", "-o", "ready"),
}
COLD = frozenset(name for name in STEPS if "ready" in name)  # with a cache folder of their own


def received_bytes() -> int:
    """Bytes that all interfaces but the loopback have received."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    rows = (line.split(":") for line in lines)
    return sum(int(figures.split()[0]) for name, figures in rows if name.strip() != "lo")


@dataclass(frozen=True)
class Step:
    """What a step took."""

    seconds: float
    since_clone_s: float
    cpu_s: float
    received_mb: float

    def cells(self) -> tuple[str, ...]:
        """The cells of its row."""
        return tuple(
            f"{value:.1f}" for value in (self.seconds, self.since_clone_s, self.cpu_s, self.received_mb)
        )


def children_s() -> float:
    """Processor time of all programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def measure(commit: str, folder: Path, steps: dict[str, Sequence[str]]) -> dict[str, Step]:
    """What each of the steps took in `folder`, which is empty."""
    clone = folder / "clone"
    clone.mkdir()
    (folder / "my.py").write_text(MODEL, encoding="ascii")
    found: dict[str, Step] = {}
    begin = time.perf_counter()
    for name, argv in steps.items():
        own = {"ETHOSU_SDK_CACHE": str(folder / ("cold" if name in COLD else "cache"))}
        if steps is SHORT:  # the environment's package is another checkout's
            own = {"PYTHONPATH": str(clone / "sdk")}
        environment = {**os.environ, **own}
        environment.pop("VIRTUAL_ENV", None)
        words = [word.format(root=ROOT, commit=commit) for word in argv]
        start, cpu_s, received = time.perf_counter(), children_s(), received_bytes()
        done = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{commit}: {' '.join(words)} ended with {done.returncode}\n{done.stderr[-2000:]}")
        end = time.perf_counter()
        found[name] = Step(
            end - start, end - begin, children_s() - cpu_s, (received_bytes() - received) / 1e6
        )
        print(f"{commit[:12]}: {name}: {end - start:.1f} s", file=sys.stderr)
    return found


def main() -> None:
    """Measure each commit and print."""
    parser = argparse.ArgumentParser(description="Time the first minutes of a newcomer.")
    parser.add_argument(
        "--short", action="store_true", help="without the set-up: clone it and run a ready program"
    )
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="HEAD without one")
    given = parser.parse_args()
    steps = SHORT if given.short else STEPS
    found = {}
    for commit in given.commits or ["HEAD"]:
        with tempfile.TemporaryDirectory() as name:
            found[commit] = measure(commit, Path(name), steps)
    table = Table(
        "step", *(f"{word} {commit[:12]}" for commit in found for word in ("s", "sum s", "CPU s", "MB"))
    )
    for step in steps:
        table.add_row(step, *(cell for steps in found.values() for cell in steps[step].cells()))
    Console().print(table)


if __name__ == "__main__":
    main()
