"""From a run that went wrong to the error that the user reads: what happened, where, the last output."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import SdkError
from ethosu_sdk.simulators.qemu.console import Console
from ethosu_sdk.simulators.qemu.firmware_image import Symbols, read_symbols

_DUMPED_REGISTER = re.compile(r"\bR(\d\d)=([0-9a-f]{8})")
_LOCKUP = re.compile(r"Lockup: (.*)")


@dataclass(frozen=True)
class Place:
    """Where the processor stood: program counter, link register, stack pointer."""

    pc: int
    lr: int
    sp: int

    def describe(self, symbols: Symbols) -> str:
        """One line, with the functions that pc and lr lie in."""
        return f"pc {_named(self.pc, symbols)}, lr {_named(self.lr, symbols)}, sp {self.sp:#010x}"


def _named(address: int, symbols: Symbols) -> str:
    name = symbols.locate(address & ~1)
    return f"{address:#010x} ({name})" if name else f"{address:#010x}"


def context(place: Place | None, elf: Path, console: Console) -> str:
    """The lines below an error's first: place, last UART output, what QEMU itself said."""
    symbols = read_symbols(elf)
    lines = [f"  at {place.describe(symbols)}"] if place is not None else []
    printed = console.last_lines()
    lines.append("  last lines on the UART:" if printed else "  nothing was printed on the UART")
    lines += [f"    {line}" for line in printed]
    if console.messages:
        lines.append(f"  QEMU says: {console.messages.splitlines()[0]}")
    return "\n".join(lines)


def add_context(error: SdkError, text: str) -> None:
    """Append `text` to the message of an error that is on its way, which keeps its type and fields."""
    error.message = f"{error.message}\n{text}"
    error.args = (error.message,)


def how_qemu_ended(returncode: int, messages: str) -> str:
    """What it means that QEMU ended with `returncode`, negative for a signal, and nobody asked it to."""
    if lockup := _LOCKUP.search(messages):
        return f"the processor locked up: {lockup[1].strip()}"
    if returncode == -signal.SIGABRT:
        return "QEMU aborted"
    if returncode < 0:
        return f"QEMU was killed from outside by {_signal_name(-returncode)}"
    return f"QEMU ended early with exit status {returncode}"


def dumped_place(messages: str) -> Place | None:
    """The registers that QEMU prints when it aborts; None when it printed none."""
    registers = {int(number): int(value, 16) for number, value in _DUMPED_REGISTER.findall(messages)}
    if not {13, 14, 15} <= registers.keys():
        return None
    return Place(registers[15], registers[14], registers[13])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
