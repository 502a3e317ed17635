#!/usr/bin/env python3
"""A double of qemu-system-arm: answers its gdb stub's greeting, and then what GDB_DOUBLE says, whatever is asked.

GDB_DOUBLE is bytes in Python's notation. ``frame:`` before them has them sent as a whole packet, ``endless:`` for
ever, ``close:`` as the last thing.
"""

import ast
import os
import socket
import sys


def frame(payload: bytes) -> bytes:
    """`payload` as a packet with its checksum."""
    return b"$%s#%02x" % (payload, sum(payload) % 256)


def main() -> None:
    if "--version" in sys.argv:
        print("QEMU emulator version 7.2.0")
        return
    descriptor = next(word.rpartition("=")[2] for word in sys.argv if word.startswith("socket,id=gdb,"))
    how, _, text = os.environ["GDB_DOUBLE"].partition(":")
    content = ast.literal_eval(text)
    with socket.socket(fileno=int(descriptor)) as connection:
        while request := connection.recv(1 << 16):
            if not request.endswith(b"$c#63"):
                for packet in request.split(b"$")[1:]:
                    known = packet.startswith(b"qXfer")
                    answer = b"l<architecture>arm</architecture>" if known else b"OK"
                    connection.sendall(frame(answer))
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
