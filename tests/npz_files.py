"""Arrays, and `.npz` files made by hand."""

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Type:
    dtype: str
    sizes: tuple[int, ...]


IMAGE = Type("float32", (1, 8, 8))
FLAG = Type("int8", (2,))


def image(*leading: int) -> npt.NDArray[np.float32]:
    shape = (*leading, *IMAGE.sizes)
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def flag(*leading: int) -> npt.NDArray[np.int8]:
    return np.ones((*leading, 2), np.int8)


def equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    same_type = one.dtype == other.dtype.newbyteorder("=")
    return same_type and one.shape == other.shape and one.tobytes("C") == other.astype(one.dtype).tobytes("C")


def archive(path: Path, *entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, data in entries:
            out.writestr(zipfile.ZipInfo(name), data, compress_type=method)


def npy(header: str, data: bytes = bytes(16), version: tuple[int, int] = (1, 0)) -> bytes:
    text = header.encode("latin-1") + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


PLAIN = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
