"""The QEMU process, for the time of a `with` block: its command line, its output, its interrupt line and its
shared memories.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ethosu_sdk.base import proc
from ethosu_sdk.base.boards import board_named
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.simulate import simulation
from ethosu_sdk.simulate.block_counts import CountsFile
from ethosu_sdk.simulate.qemu.gdb_remote import GdbRemote
from ethosu_sdk.simulate.qemu.memories import MPS3_AN547, Bank, BoardMap, Bytes

MAX_UART_BYTES = 256 << 20
_MAX_MESSAGE_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 16


class Console:
    """The guest's UART and QEMU's own messages, read from two pipes.

    :meth:`wait` is what the gdb client waits with: while the guest runs, its output is taken away as it
    arrives and goes to every stream of `logs`, unbuffered ones, so that a full pipe holds nobody up.
    """

    def __init__(self, uart: int, messages: int, logs: Sequence[IO[bytes]]) -> None:
        self._uart = uart
        self._messages = messages
        self._logs = logs
        self._poll = select.poll()
        self._open = {uart, messages}
        for descriptor in self._open:
            self._poll.register(descriptor, select.POLLIN)
        self._output = bytearray()
        self._said = bytearray()
        self._watched: int | None = None
        self._attended: dict[int, Callable[[], bool]] = {}
        self.last_byte_at = time.monotonic()
        self.trouble = ""  # why the run cannot go on: the log cannot be written, or there is too much output

    def attend(self, descriptor: int, service: Callable[[], bool]) -> None:
        """While waiting, call `service` whenever `descriptor` is readable, until it returns False."""
        self._poll.register(descriptor, select.POLLIN)
        self._attended[descriptor] = service

    @property
    def output(self) -> bytes:
        """Every byte that the guest printed."""
        return bytes(self._output)

    @property
    def messages(self) -> str:
        """What QEMU wrote to its standard error, cut after 64 KiB."""
        return self._said.decode(errors="replace").strip()

    def last_lines(self) -> list[str]:
        return simulation.last_lines(bytes(self._output), 10)

    def wait(self, descriptor: int, timeout_s: float) -> bool:
        """Take output until `descriptor` is readable (True) or the time is over (False).

        False as well, at once, when `trouble` arises.
        """
        if self._watched != descriptor:
            self._poll.register(descriptor, select.POLLIN)
            self._watched = descriptor
        deadline = time.monotonic() + timeout_s
        trouble = self.trouble
        while True:
            # Rounded up: a wait that ends before its deadline would be repeated without a pause.
            remaining_ms = int(max(0.0, deadline - time.monotonic()) * 1000 + 0.999)
            ready = [number for number, _ in self._poll.poll(remaining_ms)]
            for number in ready:
                if number in self._attended:
                    if not self._attended[number]():
                        del self._attended[number]
                        self._poll.unregister(number)
                elif number != descriptor:
                    self._take(number)
            if descriptor in ready:
                return True
            if time.monotonic() >= deadline or self.trouble != trouble:
                return False

    def drain(self, timeout_s: float) -> None:
        """Take what is left, to the end of both pipes; QEMU must have ended or be about to."""
        for number in [*self._attended, *([] if self._watched is None else [self._watched])]:
            self._poll.unregister(number)
        self._attended.clear()
        self._watched = None
        deadline = time.monotonic() + timeout_s
        while self._open and (remaining := deadline - time.monotonic()) > 0:
            for number, _ in self._poll.poll(int(remaining * 1000) + 1):
                self._take(number)

    def _take(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK_BYTES)
        if not data:
            self._poll.unregister(descriptor)
            self._open.discard(descriptor)
            return
        if descriptor == self._messages:
            self._said += data[: _MAX_MESSAGE_BYTES - len(self._said)]
            return
        self.last_byte_at = time.monotonic()
        if self.trouble:
            return
        self._output += data
        try:
            if any(log.write(data) != len(data) for log in self._logs):
                self.trouble = "the UART log cannot be written: it accepts no more bytes"
        except OSError as error:
            self.trouble = f"the UART log cannot be written: {error.strerror}"
        if len(self._output) > MAX_UART_BYTES:
            self.trouble = f"the firmware printed more than {MAX_UART_BYTES:,} bytes"


# Source: QEMU, docs/devel/testing/qtest, command ``set_irq_in QOM-PATH NAME NUM LEVEL``. The SSE-300 is the object
# ``/machine/iotkit``; its expansion interrupts are the inputs ``EXP_IRQ``, which begin at the NVIC's IRQ 32.
_EXPANSION_INPUT = board_named("corstone-300").npu_irq - 32
_ANSWER_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 4096


class QtestError(Exception):
    """QEMU refused a command, gave no answer or is gone."""


class IrqLine:
    """The level of the NPU's interrupt input, driven through QEMU's qtest object, which is told of changes only.

    It is a true level, independent of the processor.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        self._level = False

    def set(self, level: bool) -> None:
        if level == self._level:
            return
        line = b"set_irq_in /machine/iotkit EXP_IRQ %d %d\n" % (_EXPANSION_INPUT, level)
        answer = bytearray()
        try:
            self._socket.sendall(line)
            while not answer.endswith(b"\n"):
                data = self._socket.recv(256)
                if not data:
                    raise QtestError("QEMU closed the qtest connection")
                answer += data
                if len(answer) > _MAX_ANSWER_BYTES:
                    raise QtestError(
                        f"QEMU's answer on its qtest connection is too long: {bytes(answer[:20])!r}"
                    )
        except OSError as error:
            raise QtestError(f"QEMU does not answer on its qtest connection: {error}") from error
        if not answer.startswith(b"OK"):
            raise QtestError(
                f"QEMU refused {line.decode().strip()!r}: {answer.decode(errors='replace').strip()}"
            )
        self._level = level


@dataclass(frozen=True)
class Channels:
    """File descriptors that QEMU inherits.

    `memories` are the shared memories by their banks' names. `irq` is the qtest connection that drives the NPU's
    interrupt line on a board of QEMU itself, `npu` the connection of the NPU device on one of our own build; None
    where there is no NPU.
    """

    gdb: int
    memories: Mapping[str, int]
    irq: int | None = None
    npu: int | None = None

    def all(self) -> tuple[int, ...]:
        """All of them, for the child to keep open."""
        others = (number for number in (self.irq, self.npu) if number is not None)
        return (self.gdb, *self.memories.values(), *others)


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """How QEMU is started for a run.

    The guest reads its UART from `uart_input`. By Arm semihosting it gets, beside its end, files below
    `semihosting_folder` and the command line `semihosting_arguments`. With `count_instructions` every instruction
    takes 32 ns of the guest's time and a wait none of ours: its clock then counts instructions. `npu_window_bytes` is
    0 without an NPU. With `counts` the plugin counts blocks in that file.
    """

    board: BoardMap = MPS3_AN547
    semihosting_folder: Path | None = None
    semihosting_arguments: tuple[str, ...] = ()
    count_instructions: bool = False
    uart_input: int = subprocess.DEVNULL
    npu_window_bytes: int = 0
    counts: CountsFile | None = None


def qemu_argv(program: str, elf: Path, channels: Channels, options: MachineOptions) -> tuple[str, ...]:
    """The command line. QEMU starts stopped and waits for gdb; the UART is its standard output.

    A guest that resets or powers off is paused (`-action`), not ended, so that an exit packet means that the firmware
    asked for the end by semihosting.
    """
    return (
        program,
        *_memory_options(channels, options.board),
        *("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"),
        *("-action", "reboot=shutdown,shutdown=pause"),
        *("-chardev", "stdio,id=uart0,signal=off", "-serial", "chardev:uart0"),
        *("-semihosting-config", _semihosting_config(options)),
        *(("-icount", "shift=5,sleep=off") if options.count_instructions else ()),
        *("-S", "-chardev", f"socket,id=gdb,fd={channels.gdb}", "-gdb", "chardev:gdb"),
        *(("-plugin", options.counts.option()) if options.counts is not None else ()),
        *_npu_options(channels, options),
        *("-kernel", str(elf)),
    )


def _semihosting_config(options: MachineOptions) -> str:
    """In it, a comma within a value is written twice."""
    # With the target "gdb" QEMU opens no file itself: it asks gdb to, which here is an error.
    target = "gdb" if options.semihosting_folder is None else "native"
    arguments = "".join(f",arg={word.replace(',', ',,')}" for word in options.semihosting_arguments)
    return f"enable=on,target={target}{arguments}"


def _memory_options(channels: Channels, board: BoardMap) -> Iterator[str]:
    backends = [f"{bank.option}={bank.name.lower()}" for bank in board.shared]
    yield from ("-M", ",".join([board.machine, *backends]))
    for bank in board.shared:
        file = f"mem-path=/proc/self/fd/{channels.memories[bank.name]}"
        name = f"id={bank.name.lower()}"
        yield from ("-object", f"memory-backend-file,{name},size={bank.size_bytes},share=on,{file}")


def _npu_options(channels: Channels, options: MachineOptions) -> Iterator[str]:
    if not options.board.own_build:
        # With no peer for its network chip the machine prints a warning.
        yield from ("-nic", "user,restrict=on")
        yield from ("-chardev", f"socket,id=qtest,fd={channels.irq}")
        yield from ("-object", "qtest,id=qtest0,chardev=qtest,log=/dev/null")
    elif channels.npu is not None:
        yield from ("-chardev", f"socket,id=npu,fd={channels.npu}")
        yield from ("-global", "ethos-u.chardev=npu", "-global", f"ethos-u.size={options.npu_window_bytes}")


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

    def shared_bytes(self, address: int, size_bytes: int) -> Bytes | None:
        """The very bytes at `address`, which all lie in one memory; None when it is not shared."""
        found = self.board.find_bank(address, size_bytes)
        assert found is not None, f"{address:#x} is not checked"
        bank, offset = found
        memory = self.memories.get(bank.name)
        return None if memory is None else memory[offset : offset + size_bytes]


@contextlib.contextmanager
def start_machine(
    program: str, elf: Path, uart: Sequence[IO[bytes]], options: MachineOptions
) -> Iterator[Machine]:
    """QEMU with the firmware `elf`, stopped before the first instruction; it is gone when the block ends.

    What it prints goes to each stream of `uart`. Raises SimulationError when the host refuses the memory, ToolError
    when the program cannot be started.
    """
    board = options.board
    with contextlib.ExitStack() as ours:
        with contextlib.ExitStack() as theirs:  # closed here as soon as the child has them
            files = {bank.name: theirs.enter_context(_memory_file(bank)) for bank in board.shared}
            memories = {row.name: ours.enter_context(_mapped(files[row.name], row)) for row in board.shared}
            gdb, theirs_gdb = _socket_pair(ours, theirs)
            npu, theirs_npu = _socket_pair(
                ours, theirs
            )  # or its interrupt line's: QEMU may have no device for it
            with_device = board.own_build and options.npu_window_bytes > 0
            channels = Channels(
                theirs_gdb.fileno(),
                files,
                irq=None if board.own_build else theirs_npu.fileno(),
                npu=theirs_npu.fileno() if with_device else None,
            )
            counts = () if options.counts is None else (options.counts.descriptor,)
            process = ours.enter_context(
                proc.spawn(
                    qemu_argv(program, elf, channels, options),
                    cwd=options.semihosting_folder,
                    pass_fds=(*channels.all(), *counts),
                    blocked_signals=_TIDY_ENDS,
                    stdin=options.uart_input,
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
            GdbRemote(gdb, console.wait),
            console,
            board,
            memories,
            irq=None if board.own_build else IrqLine(npu),
            npu=npu if with_device else None,
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
