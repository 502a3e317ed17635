"""Reads the board's memory after a run, wherever it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.errors import InputError, SimulationError
from ethosu_sdk.simulators.qemu.bank_access import BankAccess
from ethosu_sdk.simulators.qemu.gdbremote import GdbClosedError, GdbError
from ethosu_sdk.simulators.qemu.machine import Machine
from ethosu_sdk.simulators.qemu.memory_map import BoardMap

_STOP_S = 2.0


def check(ranges: Sequence[tuple[int, int]], board: BoardMap) -> None:
    """InputError for a range that does not lie in one memory of the board."""
    for address, size_bytes in ranges:
        found = board.find_bank(address)
        if size_bytes <= 0 or found is None or found[1] + size_bytes > found[0].size_bytes:
            raise InputError(
                f"the {size_bytes:,} bytes at {address:#010x} to read do not lie in one memory of the board"
            )


def stop(machine: Machine) -> None:
    """Stop a guest that may still run, so that its memories can be read. SimulationError when it does not."""
    try:
        machine.gdb.interrupt()
        stopped = machine.gdb.receive(_STOP_S)
    except GdbClosedError:
        return  # after its last character, the firmware ended QEMU itself before we could stop it
    except GdbError as error:
        raise SimulationError(f"QEMU does not take part as expected: {error}") from error
    if stopped is None:
        raise SimulationError("QEMU did not stop at the end of the run")


def read(ranges: Sequence[tuple[int, int]], machine: Machine, banks: BankAccess) -> tuple[bytes, ...]:
    """The bytes of each of the `ranges`. SimulationError for a memory that went with QEMU."""
    return tuple(_read(address, size_bytes, machine, banks) for address, size_bytes in ranges)


def _read(address: int, size_bytes: int, machine: Machine, banks: BankAccess) -> bytes:
    found = machine.board.find_bank(address)
    assert found is not None  # checked before the run
    bank, offset = found
    if bank.name in machine.memories:  # shared with QEMU, and there after its end
        return bytes(machine.memories[bank.name][offset : offset + size_bytes])
    try:
        return bytes(banks.read(bank)[offset : offset + size_bytes])
    except GdbError as error:
        raise SimulationError(
            f"{bank.name} at {address:#010x} cannot be read after the run: the firmware ended QEMU by semihosting",
            "read it from DDR, or end the firmware with a character on its UART",
        ) from error
