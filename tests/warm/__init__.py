"""Commands and compilers of tests as forks of warm processes, without the seconds that imports take."""

import atexit
import contextlib
import dataclasses
import functools
import json
import os
import re
import selectors
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from tests.places import ROOT

_HERE = Path(__file__).parent
_DOORS = ("commands", "compilers")
# What Python, or a package that is imported already, reads as it starts.
_READ_AT_START = re.compile(
    "PYTHON|LC_|LANG|LD_|MALLOC|OMP_|OPENBLAS|MKL_|DASK|.*COLOR|TERM|GITHUB_|TYPER|ETHOSU_SDK_BOARDS"
)


@dataclasses.dataclass(frozen=True)
class _Server:
    folder: Path
    environment: Mapping[str, str]

    @property
    def interpreter(self) -> Path:
        """A program that stands for this Python where the SDK starts its compiler."""
        return self.folder / "python"


@functools.cache
def _server() -> _Server:
    """The process of server.py; its doors are open before it listens."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    server = _Server(Path(folder.name), dict(os.environ))
    words = [sys.executable, "-I", "-S", str(_HERE / "interpreter.py"), sys.executable]
    script = f'#!/bin/sh\nexec {shlex.join([*words, str(server.folder / "compilers")])} "$@"\n'
    server.interpreter.write_text(script, encoding="utf-8")
    server.interpreter.chmod(0o755)
    with contextlib.ExitStack() as stack:
        doors = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in _DOORS]
        for door, name in zip(doors, _DOORS, strict=True):
            door.bind(str(server.folder / name))
            door.listen()
        numbers = [door.fileno() for door in doors]
        process = subprocess.Popen(
            [sys.executable, "-P", str(_HERE / "server.py"), *map(str, numbers)],
            stdin=subprocess.PIPE,
            pass_fds=numbers,
            start_new_session=True,
        )

    def end() -> None:
        process.communicate()  # closes its standard input
        folder.cleanup()

    atexit.register(end)
    return server


@contextlib.contextmanager
def compilers() -> Iterator[None]:
    """While the block runs, a compiler that the SDK starts in this process is a fork."""
    with mock.patch.object(sys, "executable", str(_server().interpreter)):
        yield


def can_run(environment: Mapping[str, str]) -> bool:
    """Whether a fork with this environment is what a new process would be."""
    names = filter(_READ_AT_START.match, {*environment, *_server().environment})
    return all(environment.get(name) == _server().environment.get(name) for name in names)


def run(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], compiles: bool, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run `ethosu-sdk` with the command line `argv` in a fork; its compilers are forks too if it `compiles`."""
    executable = _server().interpreter if compiles else sys.executable
    request = {"folder": cwd, "environment": environment, "argv": argv, "executable": executable}
    return asked("commands", request, timeout_s)


def python(
    *argv: str | Path, cwd: Path = ROOT, given: str = "", timeout_s: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run ``python -c CODE``, ``-m MODULE`` or ``FILE`` in a fork that has torch and ExecuTorch imported.

    `given` is its standard input. A failure raises, with what it printed.
    """
    request = {"folder": cwd, "environment": dict(os.environ), "argv": list(map(str, argv))}
    done = asked("compilers", request, timeout_s, given)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def asked(
    door: str, request: Mapping[str, Any], timeout_s: float, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Have a fork do what `request` says, and wait for its end."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        file.write(given.encode())
        file.seek(0)
        pairs = [os.pipe() for _ in range(2)]
        readers = [stack.enter_context(open(reader, "rb", buffering=0)) for reader, _ in pairs]
        asked = stack.enter_context(socket.socket(socket.AF_UNIX))
        asked.connect(str(_server().folder / door))
        line = json.dumps(request, default=str).encode() + b"\n"
        socket.send_fds(asked, [line], [file.fileno(), *(writer for _, writer in pairs)])
        for _, writer in pairs:
            os.close(writer)
        answer = stack.enter_context(asked.makefile("rb", buffering=0))
        status, out, err = _read_all([answer, *readers], request["argv"], timeout_s)
    assert status, f"the server of {door} ended"
    return subprocess.CompletedProcess(request["argv"], os.waitstatus_to_exitcode(int(status)), out, err)


def _read_all(streams: Sequence[Any], argv: Any, timeout_s: float) -> list[str]:
    """What comes from the streams until all are closed, as text with Unix's ends of lines."""
    found: dict[int, bytes] = dict.fromkeys(range(len(streams)), b"")
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left < 0:
                raise subprocess.TimeoutExpired(argv, timeout_s, *list(found.values())[1:])
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 1 << 16)
                found[key.data] += chunk
                if not chunk:
                    selector.unregister(key.fileobj)
    return [text.decode().replace("\r\n", "\n").replace("\r", "\n") for text in found.values()]
