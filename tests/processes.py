"""Child processes of tests, with what they print as text."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
    timeout_s: float = 240,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `argv` with `given` on stdin. `env` adds to the environment. With `check`, a failure raises."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=check,
    )
