#!/usr/bin/env python3
"""A double of qemu-system-arm: loads the ELF file and answers its gdb stub's greeting; once the guest is let go, it
answers what GDB_DOUBLE says.

GDB_DOUBLE is bytes in Python's notation. ``frame:`` before them has them sent as a whole packet, ``endless:`` for
ever, ``close:`` as the last thing.
"""

import ast
import os
import socket
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ethosu_sdk.simulate.qemu import memories


def frame(payload: bytes) -> bytes:
    """`payload` as a packet with its checksum."""
    return b"$%s#%02x" % (payload, sum(payload) % 256)


def segments(elf: str) -> dict[int, bytes]:
    """What the ELF file says is in memory, by address."""
    with Path(elf).open("rb") as stream:
        return {row["p_paddr"]: row.data() for row in ELFFile(stream).iter_segments("PT_LOAD")}


def load(argv: list[str], held: dict[int, bytes]) -> None:
    """Put segments into the memories that are files, as QEMU does."""
    files = {}
    for word in (word for word in argv if word.startswith("memory-backend-file,")):
        options = dict(part.split("=", 1) for part in word.split(",")[1:])
        files[options["id"]] = options["mem-path"]
    machine = argv[argv.index("-M") + 1].partition(",")[0]
    name = "corstone-300" if machine == "mps3-an547" else machine
    board = memories.board_map(name)
    for address, data in held.items():
        bank, offset = board.find_bank(address) or (None, 0)
        if bank is not None and bank.name.lower() in files and data:
            with Path(files[bank.name.lower()]).open("r+b") as stream:
                stream.seek(offset)
                stream.write(data)


def answer(packet: bytes, held: dict[int, bytes]) -> bytes:
    """What a stub answers before the guest runs."""
    if packet.startswith(b"qXfer"):
        return b"l<architecture>arm</architecture>"
    if not packet.startswith(b"m"):
        return b"OK"
    address, size = (int(word, 16) for word in packet[1:].partition(b"#")[0].split(b","))
    at, data = next(row for row in held.items() if row[0] <= address < row[0] + len(row[1]))
    return data[address - at : address - at + size].hex().encode()


def main() -> None:
    if "--version" in sys.argv:
        print("QEMU emulator version 7.2.0")
        return
    descriptor = next(word.rpartition("=")[2] for word in sys.argv if word.startswith("socket,id=gdb,"))
    held = segments(sys.argv[sys.argv.index("-kernel") + 1])
    load(sys.argv, held)
    how, _, text = os.environ["GDB_DOUBLE"].partition(":")
    content = ast.literal_eval(text)
    with socket.socket(fileno=int(descriptor)) as connection:
        while request := connection.recv(1 << 16):
            if not request.endswith(b"$c#63"):
                for packet in request.split(b"$")[1:]:
                    connection.sendall(frame(answer(packet, held)))
                continue
            connection.sendall(frame(content) if how == "frame" else content)
            while how == "endless":
                connection.sendall(content * 1000)
            if how == "close":
                return


if __name__ == "__main__":
    try:
        main()
    except OSError:
        sys.exit(1)
