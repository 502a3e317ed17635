"""A process that imports everything once and forks for each task: start-up is fast, and a task cannot affect the
next one.

The server has one thread and serves one task at a time, over a socket, in JSON lines. It ends a task's processes,
all of them, when the task is over, takes too long or too much memory. The forkserver of the multiprocessing module
limits neither, and leaves what a task started.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ethosu_sdk.base import filesystem, plain_text, proc

Task = dict[str, Any]
DONE, TIMEOUT, MEMORY, RAISED = "done", "timeout", "memory", "raised"
KILLED, GONE = "killed", "gone"
_LOOK_EVERY_S = 0.1
_FIRST_LOOK_S = 0.005
_GRACE_S = 120.0  # for the server itself: it imports what a task needed before the next one
_PRIVATE = ("Private_Clean:", "Private_Dirty:")
_MODULE = "ethosu_sdk.base.forks"
# What tasks import is imported for those that follow; a model's own packages are not.
_PACKAGES = {"ethosu_sdk", "ethosu", "executorch", "numpy", "torch", "torchao", "tosa", "serializer"}
_SHARED = _PACKAGES | sys.stdlib_module_names
_END = b"\n"  # of a task's result: what it forked may hold the pipe open for longer


@dataclass(frozen=True)
class Answer:
    """How a task ended: DONE with its `result`, or one of the others; `detail` says by what it was killed, or what it
    raised."""

    end: str
    result: Any = None
    detail: str = ""


class Server:
    """A process that serves tasks, at the other end of the socket `ours`."""

    def __init__(self, process: proc.Child, ours: socket.socket, stream: IO[bytes]) -> None:
        self._process, self._ours, self._stream = process, ours, stream

    def call(self, task: Task, time_s: float | None, memory_bytes: int | None) -> Answer:
        """Run a task, with limits in seconds and bytes, and say how that ended.

        When the server itself dies or hangs, that is GONE, and it is of no more use.
        """
        request = {"task": task, "time_s": time_s, "memory_bytes": memory_bytes}
        self._ours.settimeout(None if time_s is None else time_s + _GRACE_S)
        try:
            self._ours.sendall(json.dumps(request).encode() + b"\n")
            line = self._stream.readline()
        except TimeoutError:
            return Answer(GONE, detail="the process that serves tasks does not answer")
        except OSError:
            line = b""
        if not line:
            return Answer(GONE, detail="the process that serves tasks has ended")
        return Answer(**json.loads(line))

    def end(self) -> None:
        """End the server and its task; another thread that waits for the answer gets GONE."""
        proc.kill_tree(self._process)


@contextlib.contextmanager
def server(module: str, log: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server for the time of a `with` block: `prepare` of `module` imports what tasks need, `perform` does a task.

    `env` adds to its environment. Start it from a thread that lives as long.
    """
    ours, theirs = socket.socketpair()
    descriptor = theirs.fileno()
    env = {**os.environ, **(env or {}), "PYTHONHASHSEED": "0"}
    with (
        ours,
        theirs,
        filesystem.open_appending(log) as output,
        proc.spawn_own(
            _MODULE, [module, str(descriptor)], env=env, pass_fds=(descriptor,), output=output
        ) as process,
        ours.makefile("rb") as stream,
    ):
        theirs.close()
        yield Server(process, ours, stream)


def main() -> None:
    """Serve on the socket of the command line ``MODULE FD PID``, behind a supervisor that is forked before anything
    is imported."""
    module, descriptor, parent = sys.argv[1:]
    proc.fork_supervisor(int(parent))
    tasks = importlib.import_module(module)
    tasks.prepare()
    _serve(int(descriptor), tasks.perform)


def _serve(descriptor: int, run: Callable[[Task], Any]) -> None:
    """Serve until the other side closes. `run` gives a task's result, in a process of its own.

    Modules of _SHARED packages that a task imported are imported here too, for those that follow.
    """
    proc.adopt_orphans()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with socket.socket(fileno=descriptor) as ours, ours.makefile("rb") as stream:
        for line in stream:
            request = json.loads(line)
            gc.collect()
            gc.freeze()
            answer, modules = _served(request, run)
            ours.sendall(json.dumps(vars(answer)).encode() + b"\n")
            for name in modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def _served(request: dict[str, Any], run: Callable[[Task], Any]) -> tuple[Answer, list[str]]:
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(parent, writer, request["task"], run)
    os.close(writer)
    try:
        answer, content = _watched(child, reader, request["time_s"], request["memory_bytes"])
    finally:
        os.close(reader)
        _end_children()
    if answer is not None:
        return answer, []
    try:
        told = json.loads(content)
    except ValueError:
        return Answer(KILLED, detail="it exited without a result"), []
    if "raised" in told:
        return Answer(RAISED, detail=told["raised"]), []
    return Answer(DONE, told["result"]), told["modules"]


def _work(parent: int, writer: int, task: Task, run: Callable[[Task], Any]) -> None:
    """What the fork does; it does not come back."""
    status = 1
    try:
        proc.bind_to(parent, signal.SIGKILL)
        known = set(sys.modules)
        try:
            told: dict[str, Any] = {"result": run(task)}
        except BaseException as error:  # a model may raise more than an Exception, such as SystemExit
            sys.excepthook(*sys.exc_info())
            told = {"raised": plain_text.error(error)}
        told["modules"] = [
            name for name in sys.modules if name not in known and name.partition(".")[0] in _SHARED
        ]
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(told).encode() + _END)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream_ in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream_.flush()
        os._exit(status)


def _watched(
    child: int, reader: int, time_s: float | None, memory_bytes: int | None
) -> tuple[Answer | None, bytes]:
    """What the task wrote, or how it was ended. Returns once the task's own process is gone."""
    deadline = None if time_s is None else time.monotonic() + time_s
    content, wait, is_gone = b"", _FIRST_LOOK_S, False
    while True:
        if select.select([reader], [], [], 0 if is_gone else wait)[0]:
            chunk = os.read(reader, 1 << 16)
            content += chunk
            if chunk and not content.endswith(_END):
                continue
            is_gone = True  # or about to be
        if is_gone:
            return _reaped(child, deadline, content)
        # It is left to be waited for: what it wrote at last is still to be read.
        is_gone = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        wait = min(wait * 2, _LOOK_EVERY_S)
        if deadline is not None and time.monotonic() > deadline:
            return _ended(child, Answer(TIMEOUT)), b""
        if memory_bytes is not None and _private_bytes() > memory_bytes:
            return _ended(child, Answer(MEMORY)), b""


def _reaped(child: int, deadline: float | None, content: bytes) -> tuple[Answer | None, bytes]:
    """How the task ended that wrote `content`, once it does."""
    status = _reap(child, deadline)
    if status is None:
        return _ended(child, Answer(TIMEOUT)), b""
    if os.WIFSIGNALED(status):
        return Answer(KILLED, detail=signal.Signals(os.WTERMSIG(status)).name), b""
    if os.waitstatus_to_exitcode(status):
        return Answer(KILLED, detail=f"exit status {os.waitstatus_to_exitcode(status)}"), b""
    return None, content


def _reap(child: int, deadline: float | None) -> int | None:
    """The wait status of `child`, which closed its pipe; None when it does not end in time."""
    while deadline is None or time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(_FIRST_LOOK_S)
    return None


def _ended(child: int, answer: Answer) -> Answer:
    proc.kill_process([child, *proc.descendants(child)])
    os.waitpid(child, 0)
    return answer


def _end_children() -> None:
    """End processes that a task left running: its orphans are the server's children."""
    while True:
        proc.kill_process(proc.descendants(os.getpid()))
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _private_bytes() -> int:
    """The memory that a task's processes have for themselves: what they share with the server counts for nobody.

    All that descend from the server are the task's: those that lost their parent are the server's own children.
    """
    total = 0
    for pid in proc.descendants(os.getpid()):
        with contextlib.suppress(OSError, ValueError):
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            rows = (line.split() for line in text.splitlines() if line.startswith(_PRIVATE))
            total += sum(int(row[1]) << 10 for row in rows)
    return total


if __name__ == "__main__":
    main()
