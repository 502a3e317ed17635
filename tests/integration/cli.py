"""The command as users start it, in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).with_name("ethosu-sdk")


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def sdk(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 240
) -> Outcome:
    """Run `ethosu-sdk` with `arguments`; `env` adds to the environment."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
