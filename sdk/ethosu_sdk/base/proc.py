"""Runs other programs: every child process of the SDK starts here, under a supervisor that ends what it started.

Killing a process group is not enough: Ninja gives every compiler a group of its own, and a SIGKILL leaves the SDK no
time to kill anything. So a fork of the SDK stays behind as the program's parent. Orphans among the program's
offspring become its children (``PR_SET_CHILD_SUBREAPER``, prctl(2)), and it ends them all when the program ends, when
it gets :data:`END_ALL`, or when the SDK is gone (``PR_SET_PDEATHSIG``). It is a fork without an exec: nothing has to
be compiled, and no second interpreter starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, SdkError, ToolError

END_ALL = signal.SIGTERM
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
        with filesystem.open_appending(log) as stream:
            stream.write(f"$ {quoted(argv)}\n{result.output}\n".encode("utf-8", errors="backslashreplace"))
    if check and result.returncode != 0:
        where = f"; the whole output is in {log}" if log is not None else ""
        raise error(
            f"{Path(argv[0]).name} failed with exit status {result.returncode}\n{tail(result.output)}".rstrip(),
            f"command: {quoted(argv)}{where}",
        )
    return result


def kill_tree(process: subprocess.Popen[Any]) -> None:
    """Kill the program and all that it started, and reap it. Safe to call twice."""
    if process.poll() is None:
        process.send_signal(END_ALL)
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
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.STDOUT,
) -> Iterator[Child]:
    """A running child for the time of a `with` block; it and all that it started are killed at the end.

    `blocked_signals` do not reach it, unless it unblocks them. Start it from a thread that lives as long
    as the child: PR_SET_PDEATHSIG follows the thread. Raises ToolError when the program cannot be started.
    """
    parent_pid = os.getpid()

    def before_exec() -> None:
        gc.disable()  # what is garbage here is the parent's
        fork_supervisor(parent_pid, {*mask, *blocked_signals}, theirs)

    with contextlib.ExitStack() as stack:
        ours, theirs = os.pipe()
        reader, writer = stack.enter_context(open(ours, "rb")), stack.enter_context(open(theirs, "wb"))
        # A signal that comes meanwhile waits until the child is known: nobody could end it otherwise.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
        try:
            process = Child(
                list(argv),
                cwd=cwd or _cwd_of_child(),
                env=None if env is None else dict(env),
                pass_fds=tuple(pass_fds),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=before_exec,
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

    The module calls :func:`fork_supervisor` before all else, with the process id that is its last argument.
    """
    argv = [sys.executable, "-P", "-m", module, *arguments, str(os.getpid())]
    try:
        process = Child(
            argv,
            cwd=_cwd_of_child(),
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


def _cwd_of_child() -> str | None:
    """Here (None), unless this folder was deleted: tools would fail in words that mislead."""
    return "/" if filesystem.working_folder_is_gone() else None


def _finish(process: Child) -> None:
    kill_tree(process)
    if process.stdout is not None:
        process.stdout.close()


# The supervisor.

_PID_BYTES = 4

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Looked up before the fork: dlopen in a forked child of a threaded process may deadlock.
_LIBC = ctypes.CDLL(None, use_errno=True)
_ALL_SIGNALS = signal.valid_signals()
_AWAITED = (signal.SIGCHLD, END_ALL)
_PATIENCE_S = 10.0  # for the end of what was killed: what waits for a dead disk does not end at all
_LOOK_AGAIN_S = 0.02


def fork_supervisor(parent_pid: int, mask: Collection[int] = (), report: int | None = None) -> None:
    """Fork: the child comes back from here and goes on, this process stays behind as its supervisor.

    `parent_pid` is the SDK's, `mask` the signals that the child is to have blocked. Its process id goes to the
    descriptor `report`, in :data:`_PID_BYTES` bytes of this machine's order. A program of the SDK's own calls it
    before all else when its parent may fork no Python: it has threads, whose frames a fork would clean up behind
    them, in the middle of what they do.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, _ALL_SIGNALS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    adopt_orphans()
    bind_to(parent_pid, END_ALL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    own_pid = os.getpid()
    program = os.fork()
    if program == 0:
        bind_to(own_pid, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    try:
        if report is not None:
            os.write(report, program.to_bytes(_PID_BYTES, sys.byteorder))
        _close_streams()
        _leave_as(_watch(program))
    finally:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all that descends from this process and loses its own."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def bind_to(parent_pid: int, number: int) -> None:
    """Get the signal `number` when the parent dies; end at once when it has."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent_pid:
        os._exit(1)


def _close_streams() -> None:
    """Close what others wait for the end of. Files stay open, and with them the SDK's locks: no other command
    works in a folder before the last compiler in it is dead."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            mode = os.fstat(int(name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.close(int(name))


def _watch(program: int) -> int:
    """Wait until `program` ends or is to be ended, then end all; the program's wait status."""
    ended: dict[int, int] = {}
    while program not in ended and signal.sigwait(_AWAITED) != END_ALL:
        ended |= _reaped()
    deadline = time.monotonic() + _PATIENCE_S
    while _has_children(ended) and time.monotonic() < deadline:
        kill_process(descendants(os.getpid()))
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_AGAIN_S)
    return ended.get(program, signal.SIGKILL)


def _has_children(ended: dict[int, int]) -> bool:
    """Note in `ended` who has ended; whether anybody is left."""
    ended |= _reaped()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reaped() -> dict[int, int]:
    """The wait status of every child that has ended."""
    found = {}
    with contextlib.suppress(ChildProcessError):
        while (answer := os.waitpid(-1, os.WNOHANG))[0]:
            found[answer[0]] = answer[1]
    return found


def kill_process(pids: Iterable[int]) -> None:
    """Kill these processes, as far as they are there and may be killed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """The processes below `root`, as the kernel lists them now."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:  # it grows while it is walked
        found += children.get(pid, ())
    return found


def _processes() -> Iterator[tuple[int, int]]:
    """(process, its parent) for all that this user may see."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name in parentheses may hold anything; behind it stand the state and the parent.
                yield int(name), int(file.read().rpartition(b")")[2].split()[1])


def _leave_as(status: int) -> NoReturn:
    """End this process as the program with that wait `status` did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)
