"""The process between the SDK and a program that it runs: it ends everything that the program started.

Killing a process group is not enough: Ninja gives every compiler a group of its own, and a SIGKILL leaves the SDK
no time to kill anything. So a fork of the SDK stays behind as the program's parent. Orphans among the program's
offspring become its children (``PR_SET_CHILD_SUBREAPER``, prctl(2)), and it ends them all when the program ends, when
it gets :data:`END_ALL`, or when the SDK is gone (``PR_SET_PDEATHSIG``). It is a fork without an exec: no helper has
to be compiled, and none starts a second interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NoReturn

END_ALL = signal.SIGTERM
PID_BYTES = 4

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Looked up before the fork: dlopen in a forked child of a threaded process may deadlock.
_LIBC = ctypes.CDLL(None, use_errno=True)
_ALL_SIGNALS = signal.valid_signals()
_AWAITED = (signal.SIGCHLD, END_ALL)
_PATIENCE_S = 10.0  # for the end of what was killed: what waits for a dead disk does not end at all
_LOOK_AGAIN_S = 0.02


def between(parent_pid: int, mask: Collection[int], report: int) -> Callable[[], None]:
    """What `subprocess` is to call before the exec: the forked child becomes the supervisor, its child goes on.

    `parent_pid` is the SDK's, `mask` the signals that the program is to have blocked. The program's process id goes
    to the descriptor `report`, in :data:`PID_BYTES` bytes of this machine's order.
    """

    def before_exec() -> None:
        gc.disable()  # what is garbage here is the parent's
        divide(parent_pid, mask, report)

    return before_exec


def divide(parent_pid: int, mask: Collection[int] = (), report: int | None = None) -> None:
    """Fork: the child comes back from here and goes on, this process stays behind as its supervisor.

    A program of the SDK's own calls it before all else when its parent, `parent_pid`, may fork no Python: it has
    threads, whose frames a fork would clean up behind them, in the middle of what they do.
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
            os.write(report, program.to_bytes(PID_BYTES, sys.byteorder))
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
        kill(descendants(os.getpid()))
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


def kill(pids: Iterable[int]) -> None:
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
