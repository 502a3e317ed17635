"""The command as users start it, in a child process."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests import processes, warm

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
COMPILING = (
    "advise",
    "build",
    "compare",
    "compile",
    "convert",
    "debug",
    "export",
    "profile",
    "report",
    "run",
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

    A compiler is a fork that has torch imported already, unless `fresh`: then nothing differs from a user's command.
    """
    env = env or {}
    may_fork = not fresh and str(*arguments[:1]) in COMPILING and not any("PYTHON" in name for name in env)
    done = processes.run(
        [*(warm.command() if may_fork else [COMMAND]), *map(str, arguments)],
        cwd=cwd,
        env=env,
        timeout_s=timeout_s,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def assert_clear(outcome: Outcome, code: int, *words: str) -> None:
    """The exit code, one message that says the words, and no traceback."""
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err
    for word in words:
        assert word in outcome.err
