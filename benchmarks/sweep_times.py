"""How long a sweep takes, as a ratio to the same cells one after another by `compile` and `run`, in the same run.

    sweep_times.py [--short | --jobs N] [--sample N] [--models NAME,…] [--targets NAME,…]

The sweep has all cells; by the command line, N of them are done, spread over the list, and their mean stands for all.
The ratio is to stay below LIMIT on two cores. With all 11 targets and the modes below there are 36 cells a
model. With one job and one named target nothing is shared: what is left is what warm processes alone give. --short
has one cell.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
LIMIT = 0.6
MODELS = "add,digits_cnn,ds_cnn,deep_autoencoder,mtcnn_pnet,mtcnn_rnet"
MODES = ("Sram_Only", "Shared_Sram", "Dedicated_Sram", "Dedicated_Sram_384KB")
MOST_AGAIN_S = 5.0


def timed(*words: str | Path, cwd: Path) -> float:
    """The seconds of a command. Cells that fail are for the table."""
    start = time.perf_counter()
    done = subprocess.run([COMMAND, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 7):
        sys.exit(done.stderr)
    return time.perf_counter() - start


def rows(folder: Path) -> list[dict[str, Any]]:
    """The cells of the sweep in `folder`, as `sweep query` tells them."""
    done = subprocess.run(
        [COMMAND, "sweep", "query", "SELECT * FROM cells", folder, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def by_hand(row: dict[str, Any], folder: Path) -> float:
    """The seconds of one cell by the command line."""
    target = ("--target", row["target"], "--system-config", row["system_config"])
    mode = ("--memory-mode", row["memory_mode"])
    return timed(
        "run",
        row["model"],
        *target,
        *mode,
        "--simulator",
        "host",
        "-q",
        "-o",
        folder / row["cell"],
        cwd=folder,
    )


def main() -> None:
    """Print both, the ratio, and how long the finished sweep takes again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sample", type=int, default=12)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--targets", default="*")
    parser.add_argument("--short", action="store_true", help="one cell in one process")
    options = parser.parse_args()
    if options.short:
        options.jobs, options.sample, options.models, options.targets = 1, 1, "add", "ethos-u55-128"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [f"zoo:{model}" for model in options.models.split(",")]
        targets = f"targets = {json.dumps(options.targets.split(','))}"
        lines = (f"models = {json.dumps(models)}", targets, 'simulators = ["host"]')
        modes = f"memory_modes = {json.dumps(MODES if options.targets == '*' else ['default'])}"
        (folder / "sweep.toml").write_text("\n".join((*lines, modes)) + "\n", encoding="utf-8")
        swept_s = timed("sweep", "sweep.toml", "-j", str(options.jobs), "-o", "out", cwd=folder)
        again_s = timed("sweep", "sweep.toml", "-o", "out", cwd=folder)
        found = rows(folder / "out")
        step = max(1, len(found) // options.sample)
        sample = [by_hand(row, folder) for row in found[::step]]
        alone_s = sum(sample) / len(sample) * len(found)
    counted: dict[str, int] = {}
    for row in found:
        counted[row["status"]] = counted.get(row["status"], 0) + 1
    print(f"{len(found)} cells ({', '.join(f'{count} {status}' for status, count in counted.items())})")
    print(
        f"sweep with {options.jobs} jobs: {swept_s:.0f} s; again: {again_s:.1f} s (at most {MOST_AGAIN_S:g})"
    )
    print(
        f"one after another: {alone_s:.0f} s, from {len(sample)} cells of {alone_s / len(found):.1f} s each"
    )
    print(f"ratio: {swept_s / alone_s:.2f} (at most {LIMIT})")


if __name__ == "__main__":
    main()
