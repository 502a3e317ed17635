"""Compares the guest's memory with its ELF file before the first instruction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ethosu_sdk.errors import InputError, SimulationError
from ethosu_sdk.files import opening
from ethosu_sdk.simulators.base import LoadedElf, LoadedSegment
from ethosu_sdk.simulators.qemu.gdbremote import GdbError
from ethosu_sdk.simulators.qemu.machine import Machine


def compare(path: Path, machine: Machine) -> LoadedElf:
    """The segments of the ELF file at `path` as the memories of a guest hold them that has not run yet.

    SimulationError when they are not those of the file, or cannot be read.
    """
    with opening.regular(path) as stream:
        try:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return LoadedElf(digest, tuple(_compared(path, stream, machine)))
        except (OSError, ELFError, ValueError) as error:
            raise InputError(f"{path} cannot be read again: {error}") from error
        except GdbError as error:
            raise SimulationError(f"QEMU does not show its memory before the run: {error}") from error


def _compared(path: Path, stream: BinaryIO, machine: Machine) -> Iterator[LoadedSegment]:
    for segment in ELFFile(stream).iter_segments("PT_LOAD"):
        address, size_bytes = segment["p_paddr"], segment["p_filesz"]
        if not size_bytes:
            continue
        held = _held(machine, address, size_bytes)
        if held != segment.data():
            raise SimulationError(
                f"QEMU did not load {path.name} correctly: its memory at {address:#010x} has other bytes than the "
                f"segment of {size_bytes:,} bytes",
                "the file was changed while the run began, or this QEMU loads it in another way",
            )
        yield LoadedSegment(address, size_bytes, hashlib.sha256(held).hexdigest())


def _held(machine: Machine, address: int, size_bytes: int) -> bytes:
    found = machine.board.find_bank(address)
    assert found is not None, f"{address:#x} is not checked"
    bank, offset = found
    if bank.name in machine.memories:  # the very bytes
        return bytes(machine.memories[bank.name][offset : offset + size_bytes])
    return machine.gdb.read_memory(address, size_bytes)
