"""The QEMU process: its command line, its sockets and its shared DDR, for the time of a `with` block."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ethosu_sdk import proc
from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu.console import Console
from ethosu_sdk.simulators.qemu.gdbremote import GdbRemote
from ethosu_sdk.simulators.qemu.memory import Bytes
from ethosu_sdk.simulators.qemu.memory_map import DDR_BYTES
from ethosu_sdk.simulators.qemu.qtest import IrqLine

# At one of these QEMU shuts down and tells gdb the same as when a firmware exits with code 0: packet W00,
# exit status 0. So that a cut run cannot pass for a finished one, they do not reach it; SIGKILL ends it.
_TIDY_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Channels:
    """File descriptors that QEMU inherits: the gdb and qtest connections, and the memory that is DDR."""

    gdb: int
    qtest: int
    ddr: int

    def all(self) -> tuple[int, ...]:
        """All of them, for the child to keep open."""
        return self.gdb, self.qtest, self.ddr


@dataclass(frozen=True)
class Semihosting:
    """What the guest gets by Arm semihosting beside the end of the run: files below `folder`, a command line."""

    folder: Path | None = None
    arguments: tuple[str, ...] = ()

    def option(self) -> str:
        """The value of `-semihosting-config`, in which a comma within a value is written twice.

        With the target "gdb" QEMU opens no file itself: it asks gdb to, which here is an error.
        """
        target = "gdb" if self.folder is None else "native"
        arguments = "".join(f",arg={word.replace(',', ',,')}" for word in self.arguments)
        return f"enable=on,target={target}{arguments}"


NO_SEMIHOSTING_FILES = Semihosting()


def qemu_argv(
    program: str,
    elf: Path,
    channels: Channels,
    semihosting: Semihosting = NO_SEMIHOSTING_FILES,
    *,
    count_instructions: bool = False,
) -> tuple[str, ...]:
    """The command line. QEMU starts stopped and waits for gdb; the UART is its standard output.

    A guest that resets or powers off is paused (`-action`), not ended, so that an exit packet means that the firmware
    asked for the end by semihosting. With `count_instructions` every instruction takes 32 ns of the guest's time and
    a wait none of ours: its clock then counts instructions.
    """
    return (
        program,
        *("-M", "mps3-an547,memory-backend=ddr"),
        *(
            "-object",
            f"memory-backend-file,id=ddr,size={DDR_BYTES},share=on,mem-path=/proc/self/fd/{channels.ddr}",
        ),
        *("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"),
        *("-nic", "user,restrict=on"),  # with no peer for its network chip the machine prints a warning
        *("-action", "reboot=shutdown,shutdown=pause"),
        *("-chardev", "stdio,id=uart0,signal=off", "-serial", "chardev:uart0"),
        *("-semihosting-config", semihosting.option()),
        *(("-icount", "shift=5,sleep=off") if count_instructions else ()),
        *("-S", "-chardev", f"socket,id=gdb,fd={channels.gdb}", "-gdb", "chardev:gdb"),
        *("-chardev", f"socket,id=qtest,fd={channels.qtest}"),
        *("-object", "qtest,id=qtest0,chardev=qtest,log=/dev/null"),
        *("-kernel", str(elf)),
    )


@dataclass(frozen=True)
class Machine:
    """A running QEMU and the ways to it. `ddr` is the guest's DDR itself."""

    process: proc.Child
    gdb: GdbRemote
    irq: IrqLine
    console: Console
    ddr: Bytes


@contextlib.contextmanager
def start(
    program: str,
    elf: Path,
    uart: Sequence[IO[bytes]],
    semihosting: Semihosting = NO_SEMIHOSTING_FILES,
    *,
    count_instructions: bool = False,
) -> Iterator[Machine]:
    """QEMU with the firmware `elf`, stopped before the first instruction; it is gone when the block ends.

    What it prints goes to each stream of `uart`. Raises SimulationError when the host refuses the memory, ToolError
    when the program cannot be started.
    """
    with contextlib.ExitStack() as ours:
        with contextlib.ExitStack() as theirs:  # closed here as soon as the child has them
            ddr_file = theirs.enter_context(_memory_file())
            ddr = ours.enter_context(_mapped(ddr_file))
            gdb_end = _socket_pair(ours, theirs)
            qtest_end = _socket_pair(ours, theirs)
            channels = Channels(gdb_end[1].fileno(), qtest_end[1].fileno(), ddr_file)
            process = ours.enter_context(
                proc.spawn(
                    qemu_argv(program, elf, channels, semihosting, count_instructions=count_instructions),
                    cwd=semihosting.folder,
                    pass_fds=channels.all(),
                    blocked_signals=_TIDY_ENDS,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
        assert process.stdout is not None  # asked for as a pipe, like the other
        assert process.stderr is not None
        ours.enter_context(process.stderr)
        console = Console(process.stdout.fileno(), process.stderr.fileno(), uart)
        gdb = GdbRemote(gdb_end[0], console.wait)
        yield Machine(process, gdb, IrqLine(qtest_end[0]), console, ddr)


def _socket_pair(
    ours: contextlib.ExitStack, theirs: contextlib.ExitStack
) -> tuple[socket.socket, socket.socket]:
    mine, other = socket.socketpair()
    return ours.enter_context(mine), theirs.enter_context(other)


@contextlib.contextmanager
def _memory_file() -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.memfd_create("ethosu-sdk-ddr")
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, DDR_BYTES)  # sparse: only pages that are touched take memory
        except OSError as error:
            text = f"the host gives no memory for the board's DDR of {DDR_BYTES:,} bytes: {error.strerror}"
            limited = error.errno == errno.EFBIG
            hint = "the size of files is limited here: `ulimit -f unlimited` lifts that" if limited else ""
            raise SimulationError(text, hint) from error
        yield descriptor


@contextlib.contextmanager
def _mapped(descriptor: int) -> Iterator[Bytes]:
    try:
        mapping = mmap.mmap(descriptor, DDR_BYTES)
    except OSError as error:
        raise SimulationError(
            f"the host cannot map the board's DDR of {DDR_BYTES:,} bytes: {error.strerror}",
            "is the address space limited (`ulimit -v`)?",
        ) from error
    try:
        yield np.frombuffer(mapping, np.uint8)
    finally:
        # The mapping itself stays while a view of it is left, in an exception's traceback for example: it
        # cannot be closed under it. The memory behind it can be given back at once; views then read zeros.
        mapping.madvise(mmap.MADV_REMOVE)
