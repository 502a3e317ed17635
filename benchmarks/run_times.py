"""How long the commands take, as seconds and as ratios to yardsticks of the same run.

    .venv/bin/python benchmarks/run_times.py [--short]

MobileNetV2 is compiled first (not timed) unless build/ has it. --short takes a ready program, each time once, with
the user's cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from stopwatch import median_s

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
MODEL = Path("build/mobilenet_v2-ethos-u55-128/mobilenet_v2.pte")
SHORT = Path(__file__).resolve().parents[1] / "tests" / "golden" / "pte" / "add_u55.pte"


def shell(*argv: str | Path, cache: Path | None = None) -> Callable[[], object]:
    """An action that runs a program, with its own cache folder if wanted."""
    env = {**os.environ, **({"ETHOSU_SDK_CACHE": str(cache)} if cache else {})}
    return lambda: subprocess.run(argv, check=True, capture_output=True, env=env)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the commands on MobileNetV2.")
    parser.add_argument("--short", action="store_true", help="a ready program, each time once")
    if parser.parse_args().short:
        measure(SHORT, 1, is_short=True)
        return
    if not MODEL.is_file():
        shell(COMMAND, "compile", "zoo:mobilenet_v2")()
    measure(MODEL, 5, is_short=False)


def measure(model: Path, repeats: int, *, is_short: bool) -> None:
    """Measure the commands on `model` and print."""

    def seconds(*argv: str | Path, cache: Path | None = None) -> float:
        return median_s(shell(*argv, cache=cache), repeats)

    python = seconds(sys.executable, "-c", "pass")
    table = Table("what", "seconds", "yardstick", "ratio", title=f"{model.stem}, ethos-u55-128")

    def row(what: str, taken: float, yardstick: str, base: float) -> None:
        table.add_row(what, f"{taken:.3f}", f"{yardstick} ({base:.3f})", f"{taken / base:.2f}")

    row("ethosu-sdk --version", seconds(COMMAND, "--version"), "python -c pass", python)
    row("inspect", seconds(COMMAND, "inspect", model), "python -c pass", python)
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "out", None if is_short else Path(scratch) / "cache"
        cold = median_s(shell(COMMAND, "build", model, "-o", folder, cache=cache), 1)
        warm_build = seconds(COMMAND, "build", model, "-o", folder, cache=cache)
        warm_run = seconds(COMMAND, "run", model, "-o", folder, cache=cache)
        row("build, cold", cold, "build, nothing to do", warm_build)
        row("run, warm", warm_run, "build, nothing to do", warm_build)
        counted = seconds(COMMAND, "run", model, "-o", folder, "--cpu-cycles", cache=cache)
        row("run --cpu-cycles", counted, "run, warm", warm_run)
    Console().print(table)


if __name__ == "__main__":
    main()
