"""The command as users start it, in a fork that has its packages imported or in a process of its own."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import processes, warm

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
COMPILING = (
    *("advise", "build", "compare", "compile", "convert", "debug"),
    *("export", "generate", "profile", "report", "run"),
)


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def sdk(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 240,
    fresh: bool = False,
) -> Outcome:
    """Run `ethosu-sdk` with `arguments`; `env` adds to the environment.

    It is a fork that has its packages imported, and so is a compiler that it starts, unless `fresh`: then nothing
    differs from a user's command.
    """
    words = [str(COMMAND), *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    if fresh or not warm.can_run(environment):
        done = processes.run(words, cwd=cwd, env=env, timeout_s=timeout_s)
    else:
        compiles = str(*arguments[:1]) in COMPILING
        done = warm.run(words, cwd=cwd, environment=environment, compiles=compiles, timeout_s=timeout_s)
    return Outcome(done.returncode, done.stdout, done.stderr)


def sdk_ok(*arguments: str | Path, cwd: Path, **settings: Any) -> Outcome:
    """The same, for a command that ends well."""
    outcome = sdk(*arguments, cwd=cwd, **settings)
    assert outcome.code == 0, outcome.err
    return outcome


def assert_clear(outcome: Outcome, code: int, *words: str) -> None:
    """The exit code, one message that says the words, and no traceback."""
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err
    for word in words:
        assert word in outcome.err
