"""Named data: what a program refers to by a key, in its own segments or in data files (`.ptd`). A data file is in
ExecuTorch's FlatTensor format. It starts as every FlatBuffers file; a header (FH01) follows with the extents of the
tables and of the segments behind them (ExecuTorch 1.5.1, extension/flat_tensor/serialize/flat_tensor_header.h)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte_schema
from ethosu_sdk.program.flatbuffer import FlatBuffer, Table, file_bytes, make_schema
from ethosu_sdk.program.pte_schema import SCALAR_TYPES

SUFFIX = ".ptd"
_SCHEMA = make_schema(pte_schema.DATA_TABLES, {}, {"ScalarType": pte_schema.ENUMS["ScalarType"]})
_DTYPES = {row.number: row.dtype for row in SCALAR_TYPES}
_HINT = "give the .ptd file that ExecuTorch 1.5 wrote with the program"
_CUT = "the file was cut off or is damaged; write it again, with its program"
_MAX_SHOWN = 100  # characters of a key; those of blocks have 64
_MAGIC = b"FH01"
_MAGIC_OFFSET = 8
_HEADER_BYTES = 40  # magic, u32 length, u64 start and size of the tables, u64 start and size of the segments
_MAX_FOUND = 64
_SEPARATORS = (".", "_", "-")
_PLACEMENTS = "external_block_placements"  # a compile specification of Ethos-U delegates
OTHER_EXPORT = "give the .ptd files that were written together with the program"


@dataclass(frozen=True)
class Layout:
    """The form of a tensor; `dim_order` lists the dimensions from the outermost in memory to the innermost."""

    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]

    def __str__(self) -> str:
        shape = f"{self.dtype}{list(self.sizes)}"
        is_plain = self.dim_order == tuple(range(len(self.sizes)))
        return shape if is_plain else f"{shape} in the order {list(self.dim_order)}"


@dataclass(frozen=True)
class Blob:
    """Bytes of a file, where they start in it, and the layout of a named tensor."""

    offset: int
    data: memoryview = field(repr=False)
    layout: Layout | None = None


@dataclass(frozen=True, eq=False)
class DataFile:
    """A checked data file; views share memory with `data`. `is_found`: it lay beside the program, unnamed."""

    path: Path
    sha256: str
    blobs: Mapping[str, Blob] = field(repr=False)
    data: memoryview = field(repr=False)
    is_found: bool = False

    @property
    def size(self) -> int:
        return len(self.data)


def read_data_file(path: Path) -> DataFile:
    """Read and check the data file at `path`. Raises InputError that says what is wrong and where."""
    data = file_bytes(path, SUFFIX, pte_schema.DATA_FILE_IDENTIFIER, _HINT)
    try:
        return replace(parse_data_file(data), path=path)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


def parse_data_file(data: bytes | bytearray | memoryview) -> DataFile:
    """Check the content of a data file; InputError for anything that is malformed or contradicts itself."""
    file = memoryview(data).toreadonly().cast("B")
    tables_end, segment_base, segment_bytes = _data_file_header(file)
    root = FlatBuffer(file[:tables_end], _SCHEMA, SUFFIX).root(pte_schema.DATA_ROOT_TABLE)
    if root.integer("version") != 0:
        raise root.error(f"is {root.integer('version')}, the SDK reads version 0", field="version")
    segments = []
    for table in root.tables("segments"):
        offset, size = table.integer("offset"), table.integer("size")
        if offset + size > segment_bytes:
            raise table.error(f"ends at byte {offset + size} of segments of {segment_bytes} bytes")
        start = segment_base + offset
        segments.append(Blob(start, file[start : start + size]))
    named = named_segments(root, segments)
    blobs = {key: replace(segment, layout=_tensor_layout(table)) for table, key, segment in named}
    return DataFile(Path(), hashlib.sha256(file).hexdigest(), blobs, file)


def named_segments(root: Table, segments: Sequence[Blob]) -> Iterator[tuple[Table, str, Blob]]:
    """Keys and segments of the rows of `named_data`. InputError for a key that is empty or twice, or no segment."""
    keys: set[str] = set()
    for table in root.tables("named_data"):
        key, index = table.string("key"), table.integer("segment_index")
        if not key or key in keys:
            raise table.error(f"is {shortened(key)!r}, which is empty or not unique", field="key")
        if index >= len(segments):
            raise table.error(f"is {index}, there are {len(segments)} segments", field="segment_index")
        keys.add(key)
        yield table, key, segments[index]


def shortened(key: str) -> str:
    """The key as messages give it: a file can hold one of any length."""
    return key if len(key) <= _MAX_SHOWN else f"{key[:_MAX_SHOWN]}…"


def _tensor_layout(table: Table) -> Layout | None:
    layout = table.table("tensor_layout")
    if layout is None:
        return None
    sizes, order = layout.integers("sizes"), tuple(layout.octets("dim_order"))
    if any(size < 0 for size in sizes):
        raise layout.error(f"is {list(sizes)}", field="sizes")
    if sorted(order) != list(range(len(sizes))):
        raise layout.error(f"is {list(order)} for {len(sizes)} dimensions", field="dim_order")
    return Layout(_DTYPES[layout.integer("scalar_type")], sizes, order)


def _data_file_header(file: memoryview) -> tuple[int, int, int]:
    """Where the tables end, where the segments start, and how many bytes those have: all within the file."""
    least = _MAGIC_OFFSET + _HEADER_BYTES
    if bytes(file[4:8]) != pte_schema.DATA_FILE_IDENTIFIER or len(file) < least:
        raise InputError("not a .ptd file: its head is missing or is another one", _HINT)
    magic = bytes(file[_MAGIC_OFFSET : _MAGIC_OFFSET + 4])
    length = int.from_bytes(file[12:16], "little")
    if magic != _MAGIC or length < _HEADER_BYTES:
        raise InputError(f"damaged .ptd file: its header is {magic!r} of {length} bytes", _HINT)
    words = (int.from_bytes(file[at : at + 8], "little") for at in range(16, least, 8))
    tables, tables_bytes, base, segment_bytes = words
    end = tables + tables_bytes
    if tables < least or end > len(file) or (segment_bytes and base < end):
        raise InputError(
            f"damaged .ptd file: its tables are bytes {tables:,} to {end:,}, its segments start at {base:,}, and the "
            f"file has {len(file):,} bytes",
            _CUT,
        )
    if base + segment_bytes > len(file):
        raise InputError(
            f"damaged .ptd file: its segments end at byte {base + segment_bytes:,}, but the file ends at "
            f"{len(file):,}",
            _CUT,
        )
    return end, base, segment_bytes


def data_files_beside(path: Path) -> tuple[DataFile, ...]:
    """The data files in the folder of the program at `path` that are its own by name. That is the program's name,
    alone or with more behind one of `.`, `_` and `-`. Of several programs that a file could belong to, it belongs to
    the one with the longest name."""
    try:
        rows = [row for row in path.parent.iterdir() if row.is_file()]
    except OSError as error:
        raise InputError(f"cannot list {path.parent}: {error.strerror}", "give --data FILE.ptd") from error
    others = [row.stem for row in rows if row.suffix == path.suffix and _belongs_to(row.stem, path.stem)]
    names = sorted(
        row.name
        for row in rows
        if row.suffix == SUFFIX
        and _belongs_to(row.stem, path.stem)
        and not any(other != path.stem and _belongs_to(row.stem, other) for other in others)
    )
    if len(names) > _MAX_FOUND:
        raise InputError(
            f"{len(names)} data files beside {path.name} have its name", "choose with --data FILE.ptd"
        )
    return tuple(replace(read_data_file(path.parent / name), is_found=True) for name in names)


def _belongs_to(name: str, program: str) -> bool:
    """Whether a file called `name` is the `program`'s own: `net.weights` is `net`'s, `net2` is not."""
    return name == program or name.startswith(tuple(program + separator for separator in _SEPARATORS))


@dataclass
class NamedData:
    """Blobs by key: of the program's `own`, and of its data files. Those are the `given` ones; without any, they are
    looked for beside the program at the path `program`, as soon as a key is not in the program. `used` are those that
    had a key."""

    own: Mapping[str, Blob]
    given: Sequence[DataFile] = ()
    program: Path | None = None
    used: list[DataFile] = field(default_factory=list)

    @functools.cached_property
    def _files(self) -> Sequence[DataFile]:
        return self.given if self.given or self.program is None else data_files_beside(self.program)

    def find(self, key: str) -> Blob | None:
        """The blob of that key, if there is one. InputError when several files have it."""
        holders = [row for row in self._files if key in row.blobs] if key not in self.own else []
        if len(holders) > 1:
            names = " and ".join(str(row.path) for row in holders[:2])
            raise InputError(
                f"the program's data '{shortened(key)}' is in {names}",
                "name one of them with --data FILE.ptd",
            )
        if not holders:
            return self.own.get(key)
        if holders[0] not in self.used:
            self.used.append(holders[0])
        return holders[0].blobs[key]

    def require(self, key: str, what: str) -> Blob:
        """The blob of that key, which is `what`; InputError, with what to do, when there is none."""
        blob = self.find(key)
        if blob is None:
            raise missing_data([key], what)
        return blob

    def in_order(self) -> tuple[DataFile, ...]:
        """The data files that the program uses, as they were given. InputError for one that was given in vain."""
        extra = next((row for row in self.given if row not in self.used), None)
        if extra is not None:
            key = next(iter(extra.blobs), None)
            holds = f"it holds '{shortened(key)}'" if key is not None else "it is empty"
            raise InputError(f"the program uses nothing of {extra.path}: {holds}", OTHER_EXPORT)
        return tuple(row for row in self._files if row in self.used) if self.used else ()


def missing_data(keys: Sequence[str], what: str) -> InputError:
    """The error for data that is neither in the program nor in its data files."""
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return InputError(
        f"{what} '{shortened(keys[0])}'{more} is not in the program and not in its data files (.ptd)",
        "give the .ptd that was written with the program: beside NAME.pte as NAME.ptd or NAME_….ptd, or where the "
        "command has the option with --data FILE.ptd; or make the program with its data inside",
    )


def check_block(name: str, key: str, blob: Blob, compile_specs: Mapping[str, bytes]) -> None:
    """InputError for an Ethos-U block that is not the compiled one: its key has a SHA-256, with the file's tag."""
    try:
        placements = json.loads(compile_specs.get(_PLACEMENTS, b"null"))
    except (ValueError, RecursionError):
        return
    tag = placements.get(name) if isinstance(placements, dict) else None
    if not isinstance(tag, str):
        return
    digest = hashlib.sha256(tag.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(blob.data)
    if digest.hexdigest() != key:
        raise InputError(
            f"the data file's '{name}' of key {key[:16]}… was changed: its SHA-256 is {digest.hexdigest()[:16]}…",
            "the .ptd is damaged: write it again, with its program",
        )
