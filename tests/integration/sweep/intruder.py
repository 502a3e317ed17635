"""``python -m tests.integration.sweep.intruder < WHAT``: what another user of the machine reaches, as JSON.

WHAT has ``addresses`` to connect to, ``files`` and ``folders`` that nobody else is to read, and ``written`` that
nobody else is to write.
"""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import distributed

NOBODY = 65534
_WAIT_S = 2.0


def _raw(address: str) -> None:
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), _WAIT_S).close()
        return
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_WAIT_S)
        connection.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)


def _dask(address: str) -> None:
    with distributed.Client(address, timeout=_WAIT_S) as client:
        client.submit(os.getuid).result(_WAIT_S)


def _read(path: str) -> None:
    with open(path, "rb", buffering=0, opener=_opener) as file:
        file.read(1)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _write(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def _make(folder: str) -> None:
    path = os.path.join(folder, "planted")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    os.unlink(path)


def _reached(what: str, names: list[str], attempt: Callable[[str], Any]) -> list[str]:
    found = []
    for name in names:
        with contextlib.suppress(Exception):
            attempt(name)
            found.append(f"{what} {name}")
    return found


def main() -> None:
    """Become nobody, and try."""
    asked = json.load(sys.stdin)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.chdir("/")
    reached = [
        *_reached("connected", asked["addresses"], _raw),
        *_reached("asked Dask", [name for name in asked["addresses"] if not name.startswith("@")], _dask),
        *_reached("read", asked["files"], _read),
        *_reached("listed", asked["folders"], os.listdir),
        *_reached("wrote", [*asked["files"], *asked["written"]], _write),
        *_reached("made a file in", asked["folders"], _make),
    ]
    json.dump(reached, sys.stdout)


if __name__ == "__main__":
    main()
