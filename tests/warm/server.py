"""The process that forks for each command and each compiler: ``python -P server.py DOOR…``, descriptors that listen.

The first door is of commands. Behind the second, who comes first starts another such process, with torch and
ExecuTorch imported and the hash seed that compilers have; tests have programs of their own run there too. A fork
starts as the program does alone, with its own arguments, environment, folder and descriptors; it merely finds its
packages imported. It ends when who asked for it ends, and the server when its standard input closes.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_FDS = 3  # of who asks
# What a fork imported is imported here for those that follow; a model's own packages are not, nor what has threads.
_OF_ALL = {"ethosu_sdk", "ethosu", "numpy"}
_KEPT = (
    {*_OF_ALL, "executorch", "torch", "torchao", "tosa", "serializer"}
    if len(sys.argv) == 2  # of compilers
    else {*_OF_ALL, "jsonschema", "msgspec", "referencing", "rich", "typer", *sys.stdlib_module_names}
)
_THREADED = ("ethosu_sdk.sweep", "concurrent", "multiprocessing")
_END = b"\n"

_Program = Callable[[dict[str, Any], list[int]], int]


def main() -> None:
    """Import, and serve at the doors of the command line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who watch
    doors = [socket.socket(fileno=int(word)) for word in sys.argv[1:]]
    for door in doors:
        door.set_inheritable(False)
    if len(doors) == 1:
        from ethosu_sdk.compile import worker

        worker.import_tools()
        importlib.import_module("ethosu_sdk.compile.worker")
        _serve(doors[0], None, _compile)
    else:
        importlib.import_module("ethosu_sdk.cli.entry")
        _serve(*doors, _command)


def _serve(door: socket.socket, others: socket.socket | None, program: _Program) -> None:
    with selectors.DefaultSelector() as selector:
        for file in filter(None, (sys.stdin, door, others)):
            selector.register(file, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is door:
                    selector.register(_forked(door.accept()[0], program), selectors.EVENT_READ)
                    continue
                selector.unregister(key.fileobj)
                if key.fileobj is others:
                    _start_compilers(others)
                else:
                    _learn(key.fd)


def _start_compilers(door: socket.socket) -> None:
    number = door.fileno()
    words = [sys.executable, "-P", __file__, str(number)]
    subprocess.Popen(words, pass_fds=(number,), env={**os.environ, "PYTHONHASHSEED": "0"})
    door.close()


def _forked(asked: socket.socket, program: _Program) -> int:
    """Fork for one program; the descriptor from which the names of the modules come that it imported."""
    reader, writer = os.pipe()
    gc.freeze()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(reader)
        os.setsid()
        _watch(asked, writer, program)
    os.close(writer)
    asked.close()
    return reader


def _learn(reader: int) -> None:
    """Import what a program imported, for those that follow."""
    with os.fdopen(reader, "rb") as stream:
        names = stream.readline().decode().split()
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _watch(asked: socket.socket, modules: int, program: _Program) -> NoReturn:
    """Run the program in a child, tell its wait status, and kill it when nobody waits for it any more."""
    content, descriptors = _request(asked)
    child = os.fork()
    if child == 0:
        asked.close()
        _run(content, descriptors, modules, program)
    for descriptor in (*descriptors, modules):
        os.close(descriptor)
    ended = os.pidfd_open(child)
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        if not any(key.fileobj == ended for key, _ in selector.select()):
            os.killpg(0, signal.SIGKILL)
    with contextlib.suppress(OSError):
        asked.sendall(str(os.waitpid(child, 0)[1]).encode() + _END)
    os._exit(0)


def _request(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    content, descriptors = b"", array.array("i")
    while not content.endswith(_END):
        part, rights, _, _ = asked.recvmsg(1 << 16, socket.CMSG_LEN(_FDS * descriptors.itemsize))
        if not part:
            os._exit(0)
        content += part
        for _, _, data in rights:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return json.loads(content), list(descriptors)


def _run(content: dict[str, Any], descriptors: list[int], modules: int, program: _Program) -> NoReturn:
    """What the program does, in this process; it does not come back."""
    status = 1
    try:
        os.chdir(content["folder"])
        os.environ.clear()
        os.environ.update(content["environment"])
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        known = set(sys.modules)
        try:
            status = program(content, descriptors)
        except SystemExit as left:
            if isinstance(left.code, str):
                print(left.code, file=sys.stderr)
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        new = " ".join(name for name in list(sys.modules) if name not in known and _is_kept(name))
        os.write(modules, new.encode() + _END)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def _is_kept(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in _KEPT and not name.startswith(_THREADED)


def _command(content: dict[str, Any], descriptors: list[int]) -> int:
    """What ``ethosu-sdk ARGUMENT…`` does, see ethosu_sdk/__main__.py."""
    from ethosu_sdk.base import interrupts
    from ethosu_sdk.cli.entry import run

    _take(descriptors, 0)
    sys.executable = content["executable"]
    sys.argv = content["argv"]
    interrupts.end_at_once()
    return run()


def _compile(content: dict[str, Any], descriptors: list[int]) -> int:
    """What ``python -m ethosu_sdk.compile.worker`` does; or any other program of Python."""
    from ethosu_sdk.compile import worker

    if "request" not in content:
        _take(descriptors, 0)
        return _python(*content["argv"])
    _take(descriptors[:2], 1)
    sys.argv = ["worker", content["request"], str(descriptors[2])]
    worker.main()
    return 0


def _python(first: str, *words: str) -> int:
    """What ``python FIRST WORD…`` does: -c CODE, -m MODULE or FILE."""
    sys.path.insert(0, str(Path(first).resolve().parent) if first.endswith(".py") else "")
    sys.argv = [first, *words] if first.endswith(".py") else [first, *words[1:]]
    if first == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(first, run_name="__main__")
    return 0


def _take(descriptors: list[int], first: int) -> None:
    """Let these be the standard streams from `first` on."""
    for number, descriptor in enumerate(descriptors, first):
        os.dup2(descriptor, number)
        os.close(descriptor)


if __name__ == "__main__":
    main()
