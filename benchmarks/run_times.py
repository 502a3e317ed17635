"""How long the commands take, as seconds and as ratios to yardsticks of the same run.

MobileNetV2 is compiled first (not timed) unless build/ has it.
"""

from __future__ import annotations

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


def shell(*argv: str | Path, cache: Path | None = None) -> Callable[[], object]:
    """An action that runs a program, with its own cache folder if wanted."""
    env = {**os.environ, **({"ETHOSU_SDK_CACHE": str(cache)} if cache else {})}
    return lambda: subprocess.run(argv, check=True, capture_output=True, env=env)


def main() -> None:
    """Measure and print."""
    if not MODEL.is_file():
        shell(COMMAND, "compile", "zoo:mobilenet_v2")()
    python = median_s(shell(sys.executable, "-c", "pass"))
    table = Table("what", "seconds", "yardstick", "ratio", title="MobileNetV2 1.0 224, ethos-u55-128")

    def row(what: str, seconds: float, yardstick: str, base: float) -> None:
        table.add_row(what, f"{seconds:.3f}", f"{yardstick} ({base:.3f})", f"{seconds / base:.2f}")

    row("ethosu-sdk --version", median_s(shell(COMMAND, "--version")), "python -c pass", python)
    row("inspect", median_s(shell(COMMAND, "inspect", MODEL)), "python -c pass", python)
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "out", Path(scratch) / "cache"
        cold = median_s(shell(COMMAND, "build", MODEL, "-o", folder, cache=cache), 1)
        warm_build = median_s(shell(COMMAND, "build", MODEL, "-o", folder, cache=cache))
        warm_run = median_s(shell(COMMAND, "run", MODEL, "-o", folder, cache=cache))
        row("build, cold", cold, "build, nothing to do", warm_build)
        row("run, warm", warm_run, "build, nothing to do", warm_build)
        counted = median_s(shell(COMMAND, "run", MODEL, "-o", folder, "--cpu-cycles", cache=cache))
        row("run --cpu-cycles", counted, "run, warm", warm_run)
    Console().print(table)


if __name__ == "__main__":
    main()
