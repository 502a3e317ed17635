"""Programs and archives that ask for more than any machine has, and the command run on them under observation."""

import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.integration.cli import COMMAND, Outcome
from tests.pte_files import changed, golden
from tests.unit.npu.streams import DMA_START, ELEMENTWISE, GLOBAL_SCALE, Setting, operands
from tests.unit.npu.vela_payloads import Payload, slots

_WORDS = (0x2000_0118, 0x2000_7000)  # CONFIG and ID of the golden program's ethos-u85-256
_PAYLOAD = 1408  # where its one segment with content starts
_SEGMENT_BYTES = 32  # where the header has the size of all segments
_ROWS = 1 << 9  # stride_mode of a DMA with rows
MOST_BYTES = 2 << 30
# Runs the command from a small process: the kernel counts what a process was before it became the command as well.
# wait4 and not RUSAGE_CHILDREN, which remembers the largest child that a process ever had.
_LAUNCHER = """
import os, subprocess, sys
command = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(command.pid, 0)
code = os.waitstatus_to_exitcode(status)
sys.stderr.write(f"\\0{code} {usage.ru_maxrss} {usage.ru_utime + usage.ru_stime}")
"""


@dataclass(frozen=True)
class Watched(Outcome):
    """An outcome with the command's largest resident memory and its time, both with its children."""

    peak_bytes: int
    cpu_s: float


def watched(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: Path | None = None
) -> Watched:
    """`ethosu-sdk` with `arguments`, in a fresh process."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(stdin or os.devnull, "rb") as given,
    ):
        subprocess.run(
            [sys.executable, "-S", "-c", _LAUNCHER, COMMAND, *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=given,
            stdout=out,
            stderr=err,
            check=False,
        )
        for file in (out, err):
            file.seek(0)
        said, _, usage = err.read().decode().rpartition("\0")
        code, peak_kib, seconds = usage.split()
        return Watched(int(code), out.read().decode(), said, int(peak_kib) << 10, float(seconds))


def delegating(path: Path, commands: bytes, scratch_bytes: int, weights: bytes = b"\0") -> Path:
    """The golden program of one Ethos-U85 delegate with other commands, scratch memory and weights, at `path`."""
    commands = commands.ljust(-(-len(commands) // 16) * 16, b"\0")
    words = len(commands) // 4
    head = [0x0010_0001, *_WORDS, 5, 5, 5, (words & 0xFFFF) << 16 | words >> 16 << 8 | 2]
    payload = replace(
        Payload(),
        cmd_data=b"COP1" + struct.pack("<7I", *head) + commands,
        weight_data=weights,
        scratch_size=struct.pack("<I", scratch_bytes),
        inputs=slots((1, 1, 1, 1, 1, 5, 4, 32, 1)),
        outputs=slots((1, 1, 1, 1, 1, 5, 4, 0, 1)),
    ).encode()
    data = changed(golden("add_u85_segment"), ("segments[1].size", len(payload)))[:_PAYLOAD]
    struct.pack_into("<Q", data, _SEGMENT_BYTES, len(payload))
    path.write_bytes(bytes(data) + payload)
    return path


def rows(length: int, count: int, target: int) -> tuple[dict[str, Setting], int, int]:
    """A DMA that writes `count` rows of `length` bytes one behind the other, each of them from byte 0 of region 1."""
    registers: dict[str, Setting] = {
        "DMA0_SRC_REGION": 1 | _ROWS,
        "DMA0_SRC": 0,
        "DMA0_DST_REGION": 1 | _ROWS,
        "DMA0_DST": target,
        "DMA0_LEN": length,
        "DMA0_SIZE0": count,
        "DMA0_SRC_STRIDE0": 0,
        "DMA0_DST_STRIDE0": length,
    }
    return registers, DMA_START, 0


def added(shape: tuple[int, int, int]) -> tuple[dict[str, Setting], int, int]:
    """An addition of int8 elements to themselves, in place."""
    registers: dict[str, Setting] = {
        **operands((0, 0, 0), shape, extra=GLOBAL_SCALE),
        **dict.fromkeys(("OFM_SCALE", "IFM_SCALE", "IFM2_SCALE"), (1, 0)),
        **dict.fromkeys(("IFM_BROADCAST", "ACC_FORMAT", "ACTIVATION"), 0),
    }
    return registers, ELEMENTWISE, 1


def shared_bytes(path: Path, names: tuple[str, ...], shape: tuple[int, ...]) -> Path:
    """An archive at `path` whose int32 arrays `names`, all zeros, are the same compressed bytes."""
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    size = 4
    for axis in shape:
        size *= axis
    packer, check = zlib.compressobj(9, zlib.DEFLATED, -15), zlib.crc32(head)
    data, left = packer.compress(head), size
    while left:
        chunk = bytes(min(left, 1 << 20))
        data, check, left = data + packer.compress(chunk), zlib.crc32(chunk, check), left - len(chunk)
    data += packer.flush()
    sizes = struct.pack("<III", check, len(data), len(head) + size)
    local = struct.pack("<IHHHHH", 0x0403_4B50, 20, 0, 8, 0, 33) + sizes
    directory = b""
    for name in names:
        text = f"{name}.npy".encode()
        directory += struct.pack("<IHHHHHH", 0x0201_4B50, 20, 20, 0, 8, 0, 33) + sizes
        directory += struct.pack("<HHHHHII", len(text), 0, 0, 0, 0, 0, 0) + text
    text = f"{names[0]}.npy".encode()
    body = local + struct.pack("<HH", len(text), 0) + text + data
    end = struct.pack("<IHHHHIIH", 0x0605_4B50, 0, 0, len(names), len(names), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path
