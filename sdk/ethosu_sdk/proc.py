"""The one door to other programs: every child process of the SDK starts here.

A child never outlives the SDK: it gets its own process group, which is killed on every way out, and the
kernel kills it when the SDK itself is killed (``PR_SET_PDEATHSIG``, prctl(2)).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ethosu_sdk.errors import BuildError, SdkError, ToolError

_PR_SET_PDEATHSIG = 1
_TAIL_LINES = 40
# Looked up before the fork: dlopen in a forked child of a threaded process may deadlock.
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ProcResult:
    """A finished child: its command, exit status and the merged output."""

    argv: tuple[str, ...]
    returncode: int
    output: str
    wall_time_s: float


def find_tool(name: str, *, hint: str) -> str:
    """The absolute path of the program `name`; ToolError with `hint` when PATH has none."""
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"the program '{name}' was not found on PATH", hint)
    return path


def quoted(argv: Sequence[str]) -> str:
    """`argv` as one line that a shell would read back as the same words."""
    return " ".join(shlex.quote(word) for word in argv)


def tail(text: str, lines: int = _TAIL_LINES) -> str:
    """The last `lines` lines of `text`."""
    return "\n".join(text.splitlines()[-lines:])


def _die_with_parent(parent_pid: int, blocked_signals: Sequence[int]) -> Callable[[], None]:
    def before_exec() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked_signals)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.getppid() != parent_pid:  # the parent died between fork and prctl
            os._exit(1)

    return before_exec


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill the child's whole process group and reap it. Safe to call twice."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def spawn(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    blocked_signals: Sequence[int] = (),
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.STDOUT,
) -> Iterator[subprocess.Popen[bytes]]:
    """A running child for the time of a `with` block; its process group is killed at the end.

    `blocked_signals` do not reach it, unless it unblocks them. Start it from a thread that lives as long
    as the child: PR_SET_PDEATHSIG follows the thread. Raises ToolError when the program cannot be started.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            pass_fds=tuple(pass_fds),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=_die_with_parent(os.getpid(), blocked_signals),  # noqa: PLW1509 - prctl needs the child's own context
        )
    except OSError as error:
        raise ToolError(
            f"could not start {argv[0]}: {error.strerror}", "`ethosu-sdk doctor` lists the tools"
        ) from error
    try:
        yield process
    finally:
        kill_group(process)
        if process.stdout is not None:
            process.stdout.close()


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    error: type[SdkError] = BuildError,
    check: bool = True,
) -> ProcResult:
    """Run `argv` to its end and return what it printed.

    `log` receives the command line and the output. With `check`, a non-zero exit status or a time-out
    (after which the process group is killed) raises `error` with the last lines of the output.
    """
    start = time.monotonic()
    with spawn(argv, cwd=cwd, env=env) as process:
        try:
            raw, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            kill_group(process)
            text = (expired.output or b"").decode(errors="replace")
            raise error(
                f"{argv[0]} did not end within {timeout_s:g} s\n{tail(text)}", quoted(argv)
            ) from expired
    result = ProcResult(
        tuple(argv), process.returncode, raw.decode(errors="replace"), time.monotonic() - start
    )
    if log is not None:
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"$ {quoted(argv)}\n{result.output}\n")
    if check and result.returncode != 0:
        where = f"; the whole output is in {log}" if log is not None else ""
        raise error(
            f"{Path(argv[0]).name} failed with exit status {result.returncode}\n{tail(result.output)}",
            f"command: {quoted(argv)}{where}",
        )
    return result
