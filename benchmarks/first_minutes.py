"""The first minutes of a newcomer: from a clone to a first result, an own model and a profile.

    .venv/bin/python benchmarks/first_minutes.py [COMMIT ...]

Each COMMIT (HEAD without one) is cloned to an empty folder, with an empty cache, and the commands of the README run
there. Debian packages stay installed, so their time is not in it. Bytes are what the network interfaces received
meanwhile, of all programs of the machine. Given two commits, before and after stand side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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
    "scripts/setup": ("scripts/setup",),
    "scripts/quickstart after it": ("scripts/quickstart",),
    "run zoo:digits_cnn": (SDK, "run", "zoo:digits_cnn", "-o", "first"),
    "run my.py, of one's own": (SDK, "run", "my.py", "-o", "own"),
    "profile of it": (SDK, "profile", "own/my.pte", "-o", "profile"),
    "run of a ready .pte, cold": (SDK, "run", "own/my.pte", "-o", "cold"),
    "run of a ready .pte, warm": (SDK, "run", "own/my.pte", "-o", "warm"),
}
COLD = "run of a ready .pte, cold"  # with a cache folder of its own


def received_bytes() -> int:
    """Bytes that all interfaces but the loopback have received."""
    lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
    rows = (line.split(":") for line in lines)
    return sum(int(figures.split()[0]) for name, figures in rows if name.strip() != "lo")


def measure(commit: str, folder: Path) -> dict[str, tuple[float, int]]:
    """Step → its seconds, and the bytes received."""
    clone, cache = folder / "clone", folder / "cache"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    subprocess.run(["git", "-C", clone, "checkout", "-q", commit], check=True)
    (clone / "my.py").write_text(MODEL, encoding="ascii")
    found = {}
    for name, argv in STEPS.items():
        place = folder / "cold" if name == COLD else cache
        environment = {**os.environ, "ETHOSU_SDK_CACHE": str(place)}
        environment.pop("VIRTUAL_ENV", None)
        start, before = time.perf_counter(), received_bytes()
        done = subprocess.run(argv, cwd=clone, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{commit}: {' '.join(argv)} ended with {done.returncode}\n{done.stderr[-2000:]}")
        found[name] = time.perf_counter() - start, received_bytes() - before
    return found


def main() -> None:
    """Measure each commit and print."""
    commits = sys.argv[1:] or ["HEAD"]
    found = []
    for commit in commits:
        with tempfile.TemporaryDirectory() as name:
            found.append(measure(commit, Path(name)))
    table = Table("step", *[word for commit in commits for word in (f"s, {commit[:12]}", "MB")])
    if len(commits) > 1:
        table.add_column("last to first")
    for step in STEPS:
        cells = [text for row in found for text in (f"{row[step][0]:.1f}", f"{row[step][1] / 1e6:.0f}")]
        ratio = [f"{found[-1][step][0] / found[0][step][0]:.2f}"] if len(commits) > 1 else []
        table.add_row(step, *cells, *ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
