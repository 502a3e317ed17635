"""How long an evaluation of 1,000 digits takes, from the command's start to its end, and where the time goes.

    .venv/bin/python benchmarks/evaluate_digits.py [--short]

The yardstick is the same compilation without --evaluate, measured in the same run. What must be ready once on a
machine (the trained weights, the host simulator's program) is made first and not timed. --short evaluates few digits
and makes nothing first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
SAMPLES, FEW = 1000, 8
LIMIT_S = 30.0


def timed(folder: Path, *options: str | Path) -> tuple[float, float]:
    """(wall time, processor time of the children) of a compilation into `folder`, in seconds."""
    before, start = os.times(), time.perf_counter()
    argv = [COMMAND, "compile", "zoo:digits_cnn", "-q", "-o", folder, *options]
    subprocess.run(argv, check=True, capture_output=True)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, processor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=f"Time an evaluation of {SAMPLES:,} digits.")
    parser.add_argument("--short", action="store_true", help=f"{FEW} digits, with what is made once")
    is_short = parser.parse_args().short
    samples = FEW if is_short else SAMPLES
    digits = load_digits()
    images = (digits.images[:samples, None] / 16.0).astype(np.float32)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        np.savez(folder / "one.npz", input0=images[:1], labels=digits.target[:1])
        np.savez(folder / "all.npz", input0=images, labels=digits.target[:samples])
        if not is_short:
            timed(folder / "warm", "--evaluate", folder / "one.npz")
        plain = timed(folder / "plain")
        whole = timed(folder / "whole", "--evaluate", folder / "all.npz")
    table = Table("what", "wall s", "processor s", title=f"digits_cnn, ethos-u55-128, {samples:,} images")
    table.add_row("compile", *(f"{value:.1f}" for value in plain))
    table.add_row("compile --evaluate", *(f"{value:.1f}" for value in whole))
    difference = [(more - less) / samples * 1e3 for more, less in zip(whole, plain, strict=True)]
    table.add_row("difference, ms for each image", *(f"{value:.2f}" for value in difference))
    console = Console()
    console.print(table)
    console.print(
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; the aim is {LIMIT_S:g} s"
    )


if __name__ == "__main__":
    main()
