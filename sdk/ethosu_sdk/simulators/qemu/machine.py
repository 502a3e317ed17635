"""The QEMU process: its sockets and its shared memories, for the time of a `with` block."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ethosu_sdk import proc
from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu.command_line import Channels, MachineOptions, qemu_argv
from ethosu_sdk.simulators.qemu.console import Console
from ethosu_sdk.simulators.qemu.gdbremote import GdbRemote
from ethosu_sdk.simulators.qemu.memory import Bytes
from ethosu_sdk.simulators.qemu.memory_map import Bank, BoardMap
from ethosu_sdk.simulators.qemu.qtest import IrqLine

# At one of these QEMU shuts down and tells gdb the same as when a firmware exits with code 0: packet W00,
# exit status 0. So that a cut run cannot pass for a finished one, they do not reach it; SIGKILL ends it.
_TIDY_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Machine:
    """A running QEMU and the ways to it.

    `memories` are the guest's shared memories themselves, by their banks' names. Either `irq`, the NPU's interrupt
    line, or `npu`, the connection of the NPU device, is there: it depends on the board.
    """

    process: proc.Child
    gdb: GdbRemote
    console: Console
    board: BoardMap
    memories: Mapping[str, Bytes]
    irq: IrqLine | None
    npu: socket.socket | None

    def lay(self, address: int, data: bytes) -> None:
        """Put `data` at `address`, which must lie in a shared memory with all of it."""
        found = self.board.find_bank(address)
        assert found is not None, f"{address:#x} is not checked"
        bank, offset = found
        self.memories[bank.name].data[offset : offset + len(data)] = data


@contextlib.contextmanager
def start(program: str, elf: Path, uart: Sequence[IO[bytes]], options: MachineOptions) -> Iterator[Machine]:
    """QEMU with the firmware `elf`, stopped before the first instruction; it is gone when the block ends.

    What it prints goes to each stream of `uart`. Raises SimulationError when the host refuses the memory, ToolError
    when the program cannot be started.
    """
    board = options.board
    with contextlib.ExitStack() as ours:
        with contextlib.ExitStack() as theirs:  # closed here as soon as the child has them
            files = {bank.name: theirs.enter_context(_memory_file(bank)) for bank in board.shared}
            memories = {row.name: ours.enter_context(_mapped(files[row.name], row)) for row in board.shared}
            gdb_end = _socket_pair(ours, theirs)
            npu_end = _socket_pair(ours, theirs)  # or its interrupt line's, where QEMU has no device for it
            theirs_npu = npu_end[1].fileno()
            with_device = board.own_build and options.npu_window_bytes > 0
            channels = Channels(
                gdb_end[1].fileno(),
                files,
                irq=None if board.own_build else theirs_npu,
                npu=theirs_npu if with_device else None,
            )
            counts = () if options.counts is None else (options.counts.descriptor,)
            process = ours.enter_context(
                proc.spawn(
                    qemu_argv(program, elf, channels, options),
                    cwd=options.semihosting.folder,
                    pass_fds=(*channels.all(), *counts),
                    blocked_signals=_TIDY_ENDS,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
        assert process.stdout is not None  # asked for as a pipe, like the other
        assert process.stderr is not None
        ours.enter_context(process.stderr)
        console = Console(process.stdout.fileno(), process.stderr.fileno(), uart)
        yield Machine(
            process,
            GdbRemote(gdb_end[0], console.wait),
            console,
            board,
            memories,
            irq=None if board.own_build else IrqLine(npu_end[0]),
            npu=npu_end[0] if with_device else None,
        )


def _socket_pair(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack
) -> tuple[socket.socket, socket.socket]:
    mine, other = socket.socketpair()
    return ours.enter_context(mine), theirs.enter_context(other)


@contextlib.contextmanager
def _memory_file(bank: Bank) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.memfd_create(f"ethosu-sdk-{bank.name.lower()}")
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, bank.size_bytes)  # sparse: only pages that are touched take memory
        except OSError as error:
            text = (
                f"cannot allocate the {bank.size_bytes:,} bytes of the board's {bank.name}: {error.strerror}"
            )
            limited = error.errno == errno.EFBIG
            hint = "file sizes are limited: `ulimit -f unlimited` removes the limit" if limited else ""
            raise SimulationError(text, hint) from error
        yield descriptor


@contextlib.contextmanager
def _mapped(descriptor: int, bank: Bank) -> Iterator[Bytes]:
    try:
        mapping = mmap.mmap(descriptor, bank.size_bytes)
    except OSError as error:
        raise SimulationError(
            f"cannot map the {bank.size_bytes:,} bytes of the board's {bank.name}: {error.strerror}",
            "check whether the address space is limited (`ulimit -v`)",
        ) from error
    try:
        yield np.frombuffer(mapping, np.uint8)
    finally:
        # The mapping itself stays while a view of it is left, in an exception's traceback for example: it
        # cannot be closed under it. The memory behind it can be given back at once; views then read zeros.
        mapping.madvise(mmap.MADV_REMOVE)
