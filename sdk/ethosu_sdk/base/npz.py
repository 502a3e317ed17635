"""Inputs and outputs as `.npz` files: read with every size checked, nothing unpickled; written reproducibly.

A `.npz` is a ZIP archive of `.npy` files (NumPy Enhancement Proposal 1). Arrays are called `input0`, `input1`, … and
`output0`, … in the model's order; several inferences are one extra leading axis on every array. NumPy's own reader
does not suffice: it sets no limit to what an archive expands to, and reads no array in parts.
"""

from __future__ import annotations

import difflib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError

Array = npt.NDArray[Any]
_T = TypeVar("_T")

_MAX_TOTAL_BYTES = 1 << 29
MOST_SAMPLES = 1 << 16  # an array in memory is an object for each of them
_MAX_ENTRIES = 4096
_MAX_HEADER_BYTES = 4096
_MAX_DIMENSIONS = 32
_DEFLATE_LIMIT = 1032  # no deflate stream expands more than that (zlib's technical notes)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_NPY_MAGIC = b"\x93NUMPY"
# The header as NumPy writes it: a Python dictionary with these keys in this order.
_NPY_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|=]?[a-zA-Z?][0-9]{0,9})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>(?:[0-9]{1,18}, ?)*(?:[0-9]{1,18},?)?)\),? ?\} *\n?"
)
_NUMBER_TYPES = re.compile(r"[<>|=]?(?:b1|\?|[iu][1248]|f[248])")
_BYTES_TYPE = re.compile(r"\|S[1-9][0-9]{0,9}")
_OBJECTS = "{'descr': '|O'"
_KEY = re.compile(r"(input|output)(0|[1-9][0-9]{0,5})")


# What zipfile and zlib raise for damaged archives, besides BadZipFile.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError, ValueError)


class TensorType(Protocol):
    """The part of a program's tensor that an array must fit: a NumPy type name and a shape."""

    @property
    def dtype(self) -> str:
        """NumPy's name of the element type."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape."""
        ...


@dataclass(frozen=True)
class SampleSet:
    """One tuple of arrays per inference, in the model's order and with the model's shapes.

    `stacked` says that the file had a leading axis of inferences.
    """

    samples: tuple[tuple[Array, ...], ...]
    stacked: bool


@dataclass(frozen=True)
class _Entry:
    """An array in the archive, known by its header. `offset` is where its data starts in the `.npy` file."""

    info: zipfile.ZipInfo
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_samples(path: Path, prefix: str, tensors: Sequence[TensorType]) -> SampleSet:
    """The arrays `<prefix>0`, `<prefix>1`, … of `path`, one for each of `tensors`.

    `prefix` is "input" or "output"; arrays of the other kind are left alone. Types must be equal,
    shapes equal or, for all arrays alike, with one more leading axis. Raises InputError that gives what was
    expected.
    """
    found = _read_tensors(path, prefix, tensors, alike=True)
    stacked = bool(found) and found[0][0] is not None
    arrays = [array for _, array in found]
    return SampleSet(tuple(zip(*arrays, strict=True)) if stacked else (tuple(arrays),), stacked)


def read_rows(path: Path, prefix: str, tensors: Sequence[TensorType]) -> tuple[tuple[Array, ...], ...]:
    """As :func:`read_samples`, but by array, and each has rows of its own: one without a leading axis has one."""
    found = _read_tensors(path, prefix, tensors, alike=False)
    return tuple((array,) if count is None else tuple(array) for count, array in found)


def _read_tensors(
    path: Path, prefix: str, tensors: Sequence[TensorType], *, alike: bool
) -> list[tuple[int | None, Array]]:
    """Each array with the length of its leading axis of inferences (None: it has none), which is one for all that
    are `alike`."""
    with Archive(path) as archive:
        names = _chosen(archive, prefix, len(tensors))
        counts = [
            _count(path, name, archive.entries[name], tensor)
            for name, tensor in zip(names, tensors, strict=True)
        ]
        if alike and len(set(counts)) > 1:
            listed = ", ".join(f"{prefix}{i}: {n or 'no such axis'}" for i, n in enumerate(counts))
            raise InputError(
                f"{path} has arrays for different numbers of inferences ({listed})",
                "give every array the same leading axis, or give none of them one",
            )
        return [(count, archive.read(name)) for count, name in zip(counts, names, strict=True)]


def read_npz(path: Path) -> dict[str, Array]:
    """All arrays of `path` by name. Raises InputError for anything but plain arrays of numbers."""
    with Archive(path) as archive:
        return {name: archive.read(name) for name in archive.entries}


def open_rows(path: Path) -> Archive:
    """`path`, whatever its size, for reading in rows. InputError as :func:`read_npz` raises."""
    return Archive(path, bounded=False)


def _chosen(archive: Archive, prefix: str, count: int) -> list[str]:
    """The names `<prefix>0` … in order. InputError unless there are exactly `count` of them."""
    path, names = archive.path, archive.entries
    expected = [f"{prefix}{index}" for index in range(count)]
    for name in names:
        match = _KEY.fullmatch(name)
        if match is None or (match.group(1) == prefix and name not in expected):
            raise InputError(
                f"{path} has an array '{name}'; the model's {prefix}s are {_listed(expected)}",
                name_hint(path, prefix, names, count) or _nearest(name, expected),
            )
    missing = [name for name in expected if name not in names]
    if missing:
        raise InputError(
            f"{path} has no array {_listed(missing)}; it has {_listed(list(names))}",
            f"the model's {prefix}s are {_listed(expected)}",
        )
    return expected


def name_hint(path: Path, prefix: str, names: Iterable[str], count: int | None = None) -> str:
    """How to write `path` with names that are read, for other `names`, where there are as many as `count` (None: as
    many as they are); else nothing."""
    others = [name for name in names if not name.startswith(prefix)]
    if not others or len(others) != (count or len(others)) or len(others) < len(list(names)):
        return ""
    # NumPy calls them so that are given without a name.
    values = [
        name if name.isidentifier() and not re.fullmatch(r"arr_\d+", name) else "array" for name in others
    ]
    words = ", ".join(f"{prefix}{index}={value}" for index, value in enumerate(values[:3]))
    return f"name the arrays: np.savez('{path.name}', {words}{', …' if len(values) > 3 else ''})"


def shape_hint(given: Sequence[int], wanted: Sequence[int]) -> str:
    """What to do about an array of a shape that a model does not take."""
    given, wanted = tuple(given), tuple(wanted)
    if len(given) == len(wanted) == 4 and (given[0], given[3], *given[1:3]) == wanted:
        return "PyTorch has the channels behind the batch: array.transpose(0, 3, 1, 2)"
    if given == wanted[1:] and wanted[0] == 1:
        return "the first axis is missing: array[None]"
    if len(given) == len(wanted) and given[1:] == wanted[1:]:
        return (
            f"several inferences need one more leading axis: array.reshape(-1, {', '.join(map(str, wanted))})"
        )
    if len(given) == len(wanted):
        axis = next(axis for axis in range(len(wanted)) if given[axis] != wanted[axis])
        return f"axis {axis} has {given[axis]} where the model has {wanted[axis]}"
    return f"give the shape {list(wanted)}; several inferences have one more leading axis"


def _nearest(name: str, expected: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), expected, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else "leave the array out"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def _count(path: Path, name: str, entry: _Entry, tensor: TensorType) -> int | None:
    """Inferences in the leading axis of an array that fits `tensor`; None when there is no such axis."""
    expected = f"expected {tensor.dtype} {list(tensor.sizes)}, got {entry.dtype.name} {list(entry.shape)}"
    if entry.dtype.name != tensor.dtype:
        raise InputError(
            f"{path}: '{name}' has the wrong type: {expected}",
            f"convert it with NumPy's .astype('{tensor.dtype}'); the SDK never converts values by itself",
        )
    if entry.shape == tensor.sizes:
        return None
    if entry.shape[1:] != tensor.sizes or not entry.shape:
        raise InputError(
            f"{path}: '{name}' has the wrong shape: {expected}",
            shape_hint(entry.shape, tensor.sizes),
        )
    if entry.shape[0] == 0:
        raise InputError(f"{path}: '{name}' holds no inference: {expected}")
    if entry.shape[0] > MOST_SAMPLES:
        raise InputError(
            f"{path}: '{name}' holds {entry.shape[0]:,} inferences, but the limit of a run is {MOST_SAMPLES:,}",
            "run the inferences in several parts",
        )
    return entry.shape[0]


class Archive:
    """An open `.npz` whose entries and headers were checked; data is read by :meth:`read` and :meth:`rows` only."""

    def __init__(self, path: Path, *, bounded: bool = True, with_bytes: bool = False) -> None:
        """`with_bytes`: arrays of bytes are read as well, and those of objects left out."""
        self.path, self._bounded, self._with_bytes = path, bounded, with_bytes
        self.entries: dict[str, _Entry] = {}
        with ExitStack() as opened:
            stream = opened.enter_context(filesystem.open_regular(path))
            self._size_bytes = stream.seek(0, io.SEEK_END)
            self._zip = opened.enter_context(self._guard(lambda: zipfile.ZipFile(stream)))
            self._opened = opened.pop_all()

    def __enter__(self) -> Archive:
        try:
            self._read_entries()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _guard(self, step: Callable[[], _T]) -> _T:
        try:
            return step()
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from error
        except _DAMAGE as error:
            raise InputError(
                f"{self.path} is not a valid .npz file: {error or type(error).__name__}",
                "write it with numpy.savez",
            ) from error

    def _read_entries(self) -> None:
        infos = self._zip.infolist()
        if len(infos) > _MAX_ENTRIES:
            raise InputError(f"{self.path} has {len(infos)} arrays, but at most {_MAX_ENTRIES} are supported")
        if sum(info.compress_size for info in infos) > self._size_bytes:
            raise InputError(f"{self.path} holds arrays that share their bytes", "write it with numpy.savez")
        total = 0
        for info in infos:
            name = info.filename.removesuffix(".npy")
            if name == info.filename or name in self.entries:
                raise self._bad(info.filename, "is not a .npy file or appears twice")
            total += info.file_size
            if self._bounded and total > _MAX_TOTAL_BYTES:
                raise InputError(
                    f"{self.path} holds more than {_MAX_TOTAL_BYTES >> 20} MiB of data",
                    "run the inferences in several parts",
                )
            if not (self._with_bytes and self._holds_objects(info)):
                self.entries[name] = self._entry(info)

    def _holds_objects(self, info: zipfile.ZipInfo) -> bool:
        def header() -> str:
            with self._zip.open(info) as stream:
                return self._header_text(stream, info.filename)[0]

        return self._guard(header).startswith(_OBJECTS)

    def _bad(self, name: str, reason: str) -> InputError:
        return InputError(f"{self.path}: '{name}' {reason}", "write the file with numpy.savez")

    def _entry(self, info: zipfile.ZipInfo) -> _Entry:
        if info.compress_type not in _METHODS or info.flag_bits & 1:
            raise self._bad(info.filename, "is encrypted or compressed in an unusual way")
        if info.file_size > max(info.compress_size, 1) * _DEFLATE_LIMIT:
            raise self._bad(info.filename, f"claims to expand to {info.file_size} bytes, which is impossible")
        entry = self._guard(lambda: self._read_header(info))
        if entry.offset + entry.nbytes != info.file_size:
            raise self._bad(
                info.filename,
                f"has {info.file_size - entry.offset} bytes of data, its shape {list(entry.shape)} of "
                f"{entry.dtype.name} needs {entry.nbytes}",
            )
        return entry

    def _read_header(self, info: zipfile.ZipInfo) -> _Entry:
        with self._zip.open(info) as stream:
            text, offset = self._header_text(stream, info.filename)
        match = _NPY_HEADER.fullmatch(text)
        if match is None:
            raise self._bad(info.filename, "has no header of a plain array")
        descr = match["descr"]
        if not (_NUMBER_TYPES.fullmatch(descr) or (self._with_bytes and _BYTES_TYPE.fullmatch(descr))):
            raise self._bad(info.filename, f"has the type '{descr}', which is not a numeric type")
        shape = tuple(int(size) for size in re.findall(r"[0-9]+", match["shape"]))
        if len(shape) > _MAX_DIMENSIONS:
            raise self._bad(info.filename, f"has {len(shape)} dimensions")
        return _Entry(info, np.dtype(descr), shape, match["fortran"] == "True", offset)

    def _header_text(self, stream: IO[bytes], name: str) -> tuple[str, int]:
        """(the header's text, the offset at which data starts); format versions 1.0, 2.0 and 3.0."""
        head = stream.read(8)
        if len(head) < 8 or head[:6] != _NPY_MAGIC or head[6] not in (1, 2, 3) or head[7] != 0:
            raise self._bad(name, "does not start like a .npy file")
        width = 2 if head[6] == 1 else 4
        length = int.from_bytes(stream.read(width), "little")
        if length > _MAX_HEADER_BYTES:
            raise self._bad(name, f"has a header of {length} bytes")
        return stream.read(length).decode("latin-1"), 8 + width + length

    @property
    def arrays(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Type and shape of each array, by name."""
        return {name: (entry.dtype, entry.shape) for name, entry in self.entries.items()}

    def read(self, name: str) -> Array:
        """The values of the array `name`, in the machine's byte order and C order."""
        entry = self.entries[name]
        self._check_size(entry)
        return self._checked(self._guard(lambda: self._read_array(entry)), entry)

    def _read_array(self, entry: _Entry) -> Array:
        with self._zip.open(entry.info) as stream:
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)  # type: ignore[no-untyped-call]
            if stream.read(1):  # reading to the end also compares the checksum
                raise zipfile.BadZipFile(f"{entry.info.filename} is longer than its entry says")
            return array

    def _checked(self, array: Array, entry: _Entry) -> Array:
        if entry.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise self._bad(entry.info.filename, "holds bytes other than 0 and 1 as bool")
        return array.astype(entry.dtype.newbyteorder("="), order="C", copy=False)

    def rows(self, name: str) -> Iterator[Array]:
        """The rows of the array `name`, which has at least one axis, as :meth:`read` would give them; only one is in
        memory at a time, unless the array is in Fortran order. InputError for damage, at the row where it shows."""
        entry = self.entries[name]
        if entry.fortran and len(entry.shape) > 1:
            if entry.nbytes > _MAX_TOTAL_BYTES:
                raise self._bad(entry.info.filename, "is in Fortran order, and too large to be reordered")
            yield from self.read(name)
            return
        row = replace(entry, shape=entry.shape[1:])
        self._check_size(row)
        with self._guard(lambda: self._zip.open(entry.info)) as stream:
            self._guard(lambda: stream.read(entry.offset))
            for _ in range(entry.shape[0]):
                data = bytearray(self._guard(lambda: stream.read(row.nbytes)))
                if len(data) != row.nbytes:
                    raise self._bad(entry.info.filename, f"ends after {len(data)} of {row.nbytes} bytes")
                yield self._checked(np.frombuffer(data, row.dtype).reshape(row.shape), row)
            self._guard(lambda: stream.read(1))  # reading to the end also compares the checksum

    def _check_size(self, entry: _Entry) -> None:
        """Refuse what does not belong into memory at once."""
        if entry.nbytes > _MAX_TOTAL_BYTES:
            raise self._bad(
                entry.info.filename,
                f"needs {entry.nbytes:,} bytes of memory at once, but the limit is {_MAX_TOTAL_BYTES:,}",
            )


# Writing: equal arrays give equal bytes.

_NPY_ALIGNMENT = 64
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date that ZIP can store


def write_npz(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write `arrays` under their names, atomically; equal arrays give equal bytes. Nothing is compressed."""
    with staged_npz(path, arrays) as publish:
        publish()


def staged_npz(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]]
) -> AbstractContextManager[Callable[[], None]]:
    """The same in two halves: see :func:`ethosu_sdk.base.filesystem.staged`."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"array '{name}' cannot be stored: its type {array.dtype} is not numeric")
    return filesystem.staged(path, lambda temporary: _write_archive(temporary, arrays))


def _write_archive(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _FIXED_DATE)
            info.create_system = 3  # Unix
            info.external_attr = 0o100644 << 16  # a regular file
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
