"""Writes `.npz` files reproducibly: equal arrays give equal bytes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import writing

_NPY_MAGIC = b"\x93NUMPY"
_NPY_ALIGNMENT = 64
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date that ZIP can store
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3


def write_npz(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write `arrays` under their names, atomically; equal arrays give equal bytes. Nothing is compressed."""
    with staged_npz(path, arrays) as publish:
        publish()


def staged_npz(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]]
) -> AbstractContextManager[Callable[[], None]]:
    """The same in two halves: see :func:`ethosu_sdk.files.writing.staged`."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"array '{name}' cannot be stored: its type {array.dtype} is not numeric")
    return writing.staged(path, lambda temporary: _write_archive(temporary, arrays))


def _write_archive(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _FIXED_DATE)
            info.create_system = _UNIX
            info.external_attr = _REGULAR_FILE
            archive.writestr(info, _npy(array))


def _npy(array: npt.NDArray[Any]) -> bytes:
    """`array` as a `.npy` file of version 1.0, little-endian, in C order, data on a multiple of 64 bytes."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    header = f"{{'descr': '{little.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}"
    head_bytes = len(_NPY_MAGIC) + 4
    length = -(-(head_bytes + len(header) + 1) // _NPY_ALIGNMENT) * _NPY_ALIGNMENT - head_bytes
    text = header.ljust(length - 1) + "\n"
    head = _NPY_MAGIC + b"\x01\x00" + length.to_bytes(2, "little")
    return head + text.encode("ascii") + little.tobytes("C")
