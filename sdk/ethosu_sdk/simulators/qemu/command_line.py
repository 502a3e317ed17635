"""QEMU's command line, for a board of QEMU itself and for one of our own build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.simulators.qemu.block_counts import CountsFile
from ethosu_sdk.simulators.qemu.memory_map import MPS3_AN547, BoardMap


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


@dataclass(frozen=True)
class MachineOptions:
    """How QEMU is started for a run.

    With `count_instructions` every instruction takes 32 ns of the guest's time and a wait none of ours: its clock
    then counts instructions. `npu_window_bytes` is 0 without an NPU. With `counts` the
    plugin counts blocks in that file.
    """

    board: BoardMap = MPS3_AN547
    semihosting: Semihosting = NO_SEMIHOSTING_FILES
    count_instructions: bool = False
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
        *("-semihosting-config", options.semihosting.option()),
        *(("-icount", "shift=5,sleep=off") if options.count_instructions else ()),
        *("-S", "-chardev", f"socket,id=gdb,fd={channels.gdb}", "-gdb", "chardev:gdb"),
        *(("-plugin", options.counts.option()) if options.counts is not None else ()),
        *_npu_options(channels, options),
        *("-kernel", str(elf)),
    )


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
