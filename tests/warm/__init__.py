"""Compilers of tests, without the seconds that each would take to import torch and ExecuTorch."""

import atexit
import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

_HERE = Path(__file__).parent
_START_S = 120
_COMMAND = "import sys; sys.executable = {!r}; from ethosu_sdk.__main__ import main; main()"


def command() -> list[str]:
    """`ethosu-sdk` in a process of its own, as ever; the compiler that it starts is a fork."""
    return [sys.executable, "-P", "-c", _COMMAND.format(str(interpreter()))]


@contextlib.contextmanager
def compilers() -> Iterator[None]:
    """While the block runs, a compiler that the SDK starts in this process is a fork."""
    with mock.patch.object(sys, "executable", str(interpreter())):
        yield


@functools.cache
def interpreter() -> Path:
    """A program that stands for this Python where the SDK starts its compiler; its server is started here."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    address, program = Path(folder.name) / "socket", Path(folder.name) / "python"
    words = [sys.executable, "-I", "-S", str(_HERE / "interpreter.py"), sys.executable, str(address)]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-P", str(_HERE / "server.py"), str(address)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )

    def end() -> None:
        server.communicate()  # closes its standard input
        folder.cleanup()

    atexit.register(end)
    deadline = time.monotonic() + _START_S
    while not address.exists():
        assert server.poll() is None, "the server of compilers ended"
        assert time.monotonic() < deadline, "the server of compilers does not start"
        time.sleep(0.05)
    return program
