"""A child process whose output is read as a terminal shows it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout_s: float = 600
) -> tuple[int, str]:
    """The exit code, and what came on stdout and stderr."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return done.returncode, done.stdout
