"""Runs other programs: every child process of the SDK starts here.

No child outlives the SDK, and nothing that a child started: see :mod:`ethosu_sdk.proc.supervisor`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ethosu_sdk.errors import BuildError, SdkError, ToolError
from ethosu_sdk.files import opening
from ethosu_sdk.proc import supervisor

_TAIL_LINES = 40
_ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


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


def kill_tree(process: subprocess.Popen[Any]) -> None:
    """Kill the program and all that it started, and reap it. Safe to call twice."""
    if process.poll() is None:
        process.send_signal(supervisor.END_ALL)
    process.wait()


class Child(subprocess.Popen[bytes]):
    """A running program. `pid` is its supervisor, whose exit status is the program's own; `program_pid` is itself."""

    program_pid: int = 0


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
) -> Iterator[Child]:
    """A running child for the time of a `with` block; it and all that it started are killed at the end.

    `blocked_signals` do not reach it, unless it unblocks them. Start it from a thread that lives as long
    as the child: PR_SET_PDEATHSIG follows the thread. Raises ToolError when the program cannot be started.
    """
    with contextlib.ExitStack() as stack:
        ours, theirs = os.pipe()
        reader, writer = stack.enter_context(open(ours, "rb")), stack.enter_context(open(theirs, "wb"))
        # A signal that comes meanwhile waits until the child is known: nobody could end it otherwise.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
        try:
            process = Child(
                list(argv),
                cwd=cwd or _working_folder(),
                env=None if env is None else dict(env),
                pass_fds=tuple(pass_fds),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=supervisor.between(os.getpid(), {*mask, *blocked_signals}, theirs),
            )
            stack.callback(_finish, process)
            writer.close()
            process.program_pid = int.from_bytes(reader.read(), sys.byteorder)
        except (OSError, subprocess.SubprocessError) as error:
            raise _not_started(argv[0], error) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield process


@contextlib.contextmanager
def spawn_own(
    module: str, arguments: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], output: IO[Any]
) -> Iterator[Child]:
    """The same for a module of the SDK, by a process with threads: nothing of Python runs between fork and exec.

    The module calls :func:`supervisor.divide` before all else, with the process id that is its last argument.
    """
    argv = [sys.executable, "-P", "-m", module, *arguments, str(os.getpid())]
    try:
        process = Child(
            argv,
            cwd=_working_folder(),
            env=dict(env),
            pass_fds=tuple(pass_fds),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    try:
        yield process
    finally:
        _finish(process)


def _not_started(program: str, error: Exception) -> ToolError:
    reason = error.strerror if isinstance(error, OSError) else "the system does not allow another process"
    return ToolError(f"could not start {program}: {reason}", "`ethosu-sdk doctor` lists the tools")


def _working_folder() -> str | None:
    """Where a child runs: here (None), unless this folder was deleted. Tools then fail in words that mislead."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "/"
    return None


def _finish(process: Child) -> None:
    kill_tree(process)
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
    (after which all of its processes are killed) raises `error` with the last lines of the output.
    """
    start = time.monotonic()
    with spawn(argv, cwd=cwd, env=env) as process:
        try:
            raw, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            kill_tree(process)
            text = (expired.output or b"").decode(errors="replace")
            raise error(
                f"{argv[0]} did not end within {timeout_s:g} s\n{tail(text)}".rstrip(), quoted(argv)
            ) from expired
    result = ProcResult(
        tuple(argv), process.returncode, raw.decode(errors="replace"), time.monotonic() - start
    )
    if log is not None:
        with opening.appending(log) as stream:
            stream.write(f"$ {quoted(argv)}\n{result.output}\n".encode("utf-8", errors="backslashreplace"))
    if check and result.returncode != 0:
        where = f"; the whole output is in {log}" if log is not None else ""
        raise error(
            f"{Path(argv[0]).name} failed with exit status {result.returncode}\n{tail(result.output)}".rstrip(),
            f"command: {quoted(argv)}{where}",
        )
    return result
