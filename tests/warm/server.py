"""The process that has torch and ExecuTorch imported, and forks for each compiler: ``python -P server.py SOCKET``.

A compiler starts here as it does alone, with its own arguments, environment, folder and descriptors; it merely finds
its packages imported, which are four fifths of the time that a small model takes. It ends when who asked for it ends,
and the server when its standard input closes.
"""

import array
import contextlib
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from typing import Any

FDS = 3  # of who asks: output, errors, and the pipe for results
_PACKAGES = ("ethosu_sdk", "ethosu", "executorch", "numpy", "torch", "torchao", "tosa", "serializer")
_END = b"\n"


def main() -> None:
    """Import, and serve the socket of the command line."""
    from ethosu_sdk.aot.pipeline import stages

    stages.import_tools()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who watch
    importlib.import_module("ethosu_sdk.aot.pipeline.worker")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{sys.argv[1]}.new")
        door.listen()
        os.rename(f"{sys.argv[1]}.new", sys.argv[1])
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            selector.register(door, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is sys.stdin:
                        return
                    if key.fileobj is door:
                        selector.register(_forked(door.accept()[0]), selectors.EVENT_READ)
                    else:
                        selector.unregister(key.fileobj)
                        _learn(key.fd)


def _forked(asked: socket.socket) -> int:
    """Fork for one compiler; the descriptor from which the names of the modules come that it imported."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(reader)
        os.setsid()
        _watch(asked, writer)
    os.close(writer)
    asked.close()
    return reader


def _learn(reader: int) -> None:
    """Import what a compiler imported, for those that follow."""
    with os.fdopen(reader, "rb") as stream:
        names = stream.readline().decode().split()
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _watch(asked: socket.socket, modules: int) -> None:
    """Run the compiler in a child, tell its wait status, and kill it when nobody waits for it any more."""
    content, descriptors = _request(asked)
    child = os.fork()
    if child == 0:
        asked.close()
        _compile(content, descriptors, modules)
    for descriptor in (*descriptors, modules):
        os.close(descriptor)
    status = None
    asked.settimeout(0.005)
    while status is None:
        pid, found = os.waitpid(child, os.WNOHANG)
        status = found if pid else None
        with contextlib.suppress(TimeoutError):
            if asked.recv(1) == b"":
                os.killpg(0, signal.SIGKILL)
    with contextlib.suppress(OSError):
        asked.sendall(str(status).encode() + _END)
    os._exit(0)


def _request(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    content, descriptors = b"", array.array("i")
    while not content.endswith(_END):
        part, rights, _, _ = asked.recvmsg(1 << 16, socket.CMSG_LEN(FDS * descriptors.itemsize))
        content += part
        for _, _, data in rights:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return json.loads(content), list(descriptors)


def _compile(content: dict[str, Any], descriptors: list[int], modules: int) -> None:
    """What ``python -m ethosu_sdk.aot.pipeline.worker`` does, in this process; it does not come back."""
    from ethosu_sdk.aot.pipeline import worker

    status = 1
    try:
        os.chdir(content["folder"])
        os.environ.clear()
        os.environ.update(content["environment"])
        for number, descriptor in zip((1, 2), descriptors, strict=False):
            os.dup2(descriptor, number)
        known = set(sys.modules)
        sys.argv = ["worker", content["request"], str(descriptors[2])]
        worker.main()
        new = (name for name in list(sys.modules) if name not in known)
        os.write(modules, " ".join(name for name in new if name.split(".")[0] in _PACKAGES).encode() + _END)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
