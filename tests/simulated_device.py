"""A device for `--device`: the SDK's device firmware on QEMU, behind a pseudo-terminal or a socket.

It says of itself that it is QEMU. As a program it prints its place, serves until it is killed, and leaves nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import socket
import sys
import tempfile
import threading
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.program import protocol
from ethosu_sdk.run.device import device_firmware
from ethosu_sdk.simulate.device import device
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest

_LONG_S = 600_000.0


class _Tee(io.RawIOBase):
    """What the UART prints, to whoever listens now."""

    def __init__(self) -> None:
        self.listener: int | None = None

    def write(self, data: Any) -> int:
        rest = bytes(data)
        while rest and self.listener is not None:
            try:
                rest = rest[os.write(self.listener, rest) :]
            except OSError:
                self.listener = None
        return len(data)


def serve(
    firmware: Executable, target: Target | None, tee: _Tee, uart_input: int, marked: bool = True
) -> None:
    """Run the device until its process is killed."""
    simulator = QemuSimulator()
    images = ()
    if marked:
        place = firmware.symbols[protocol.DEVICE_MARK_SYMBOL].address
        images = ((place, device.mark(f"qemu {simulator.version()}")),)
    with tempfile.TemporaryDirectory() as folder:
        request = SimulationRequest(
            elf=firmware.elf,
            images=images,
            target=target,
            timeout_s=_LONG_S,
            idle_timeout_s=_LONG_S,
            uart_log=Path(folder) / "uart.log",
            uart_tee=cast(Any, tee),
            uart_input=uart_input,
        )
        simulator.run(request)


def _pump(source: int, sink: int) -> None:
    while True:
        try:
            data = os.read(source, 4096)
        except OSError:
            return
        if not data:
            return
        os.write(sink, data)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--board", default="corstone-300")
    parser.add_argument("--target", help="TARGET[,SYSTEM-CONFIG,MEMORY-MODE]")
    parser.add_argument("--socket", action="store_true", help="instead of a pseudo-terminal")
    parser.add_argument("--unmarked", action="store_true", help="do not say that it is a simulator")
    words = parser.parse_args()
    firmware = device_firmware(words.board, Reporter(quiet=True))
    target = None if words.target is None else parse_target(*words.target.split(","))
    ours, theirs = socket.socketpair()
    tee = _Tee()
    if words.socket:
        listener = socket.create_server(("127.0.0.1", 0))
        place = f"socket:127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=_accept, args=(listener, tee, ours.fileno()), daemon=True).start()
    else:
        master, slave = os.openpty()  # the other end stays open: the device is there while nobody listens
        tty.setraw(slave)
        place = f"serial:{os.ttyname(slave)}"
        tee.listener = master
        threading.Thread(target=_pump, args=(master, ours.fileno()), daemon=True).start()
    print(place, flush=True)
    serve(firmware, target, tee, theirs.fileno(), marked=not words.unmarked)


def _accept(listener: socket.socket, tee: _Tee, sink: int) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            tee.listener = connection.fileno()
            _pump(connection.fileno(), sink)
            tee.listener = None


@contextlib.contextmanager
def running(*words: str) -> Iterator[tuple[str, Any]]:
    """The place of a device for the time of a `with` block, and its process."""
    from ethosu_sdk.base import proc

    argv = [sys.executable, "-m", "tests.simulated_device", *words]
    with proc.spawn(argv) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith(("serial:", "socket:")), line + process.stdout.read().decode()
        yield line.strip(), process


if __name__ == "__main__":
    main()
