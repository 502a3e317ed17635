"""A whole `.pte` file: header, segments, plans, and the target that it was compiled for. Read without ExecuTorch:
fast, and safe with files that are damaged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target, accelerator, parse_name, parse_target, suggestion
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import named_data, pte_schema
from ethosu_sdk.program.execution_plan import ENTRY, Delegate, ExecutionPlan, Header, Segment, Tensor
from ethosu_sdk.program.flatbuffer import FlatBuffer, file_bytes, make_schema
from ethosu_sdk.program.named_data import DataFile
from ethosu_sdk.program.plan_reader import read_plan, read_storage

_VELA_INI = "Arm/vela.ini"  # any other configuration file is the user's, and its names are not in our tables
_COMPILE_HINT = "compile the model again with `ethosu-sdk compile`"
_METHOD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")  # it is a part of file names and of C++ source
SCHEMA = make_schema(pte_schema.TABLES, pte_schema.UNIONS, pte_schema.ENUMS)
_NOT_A_PTE = "give a .pte file made by ExecuTorch 1.5; `ethosu-sdk compile` makes one"

# The extended header follows the FlatBuffers root offset and file identifier (ExecuTorch 1.5.1,
# schema/extended_header.h): magic, u32 length, u64 program size, u64 segment base, u64 segment size.
_EXTENDED_MAGIC = b"eh00"
_EXTENDED_OFFSET = 8
_EXTENDED_MIN_BYTES = 24  # older files do not state the size of the segments
_EXTENDED_FULL_BYTES = 32


@dataclass(frozen=True)
class Pte:
    """A checked program; views share memory with `data`. `named_data` is its own, `data_files` hold the rest.

    `is_stream`: it is no `.pte` but what Vela itself wrote, which does not say what system it was compiled for."""

    sha256: str
    size: int
    header: Header
    version: int
    plans: tuple[ExecutionPlan, ...]
    segments: tuple[Segment, ...]
    named_data: Mapping[str, memoryview] = field(repr=False)
    data: memoryview = field(repr=False)
    data_files: tuple[DataFile, ...] = ()
    is_stream: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that compute something; others only give a constant, such as a scale."""
        return tuple(row.name for row in self.plans if row.inputs or row.instructions) or (
            self.plans[0].name,
        )

    def plan(self, name: str | None = None) -> ExecutionPlan:
        """The method called `name`; by default ``forward``, or the only one. InputError when there is none of that
        name, or for a name that could be a path or code; UsageError when one must be chosen."""
        chosen = name if name is not None else self._default()
        for plan in self.plans:
            if plan.name == chosen:
                if not _METHOD_NAME.fullmatch(chosen):
                    raise InputError(f"the method name {chosen!r} is not an identifier", _NOT_A_PTE)
                return plan
        raise InputError(
            f"the program has no method '{chosen}'", suggestion(chosen, [plan.name for plan in self.plans])
        )

    def check_data(self) -> None:
        """InputError for a tensor whose data is neither in the file nor in a data file (`.ptd`)."""
        values = (value for plan in self.plans for value in plan.values if isinstance(value, Tensor))
        missing = sorted({row.external_name for row in values if row.external_name and row.data is None})
        if missing:
            raise named_data.missing_data(missing, "the program's data")

    def _default(self) -> str:
        names = [plan.name for plan in self.plans]
        if ENTRY in names or len(self.methods) == 1:
            return ENTRY if ENTRY in names else self.methods[0]
        raise UsageError(
            f"the program has {len(self.methods)} methods: {', '.join(self.methods)}",
            "`run` and `profile` take one with --method NAME; other commands need a program of one module: "
            "`ethosu-sdk compile FILE.py:NAME`",
        )

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        return tuple(delegate for plan in self.plans for delegate in plan.delegates)

    def target(self) -> Target | None:
        """The NPU and configuration that the program was compiled for; None when nothing is delegated to one, or
        where Vela's own output does not say it.
        ExecuTorch 1.5.1 stores Vela's flags and the accelerator beside each delegate; the CONFIG word in the payload,
        which Vela derives from the accelerator, is the cross-check. Raises InputError when they are missing,
        contradict each other or name what does not exist, and when two delegates were compiled for different
        targets."""
        found: Target | None = None
        for index, delegate in enumerate(self.delegates):
            if delegate.vela is None or self.is_stream:
                continue
            target = _delegate_target(delegate, delegate.vela, f"delegates[{index}]")
            if found is not None and target != found:
                first, second = (
                    f"{row.name} with {row.system_config} and {row.memory_mode}" for row in (found, target)
                )
                raise InputError(
                    f"the program was compiled for two targets: {first}, and {second}", _COMPILE_HINT
                )
            found = target
        return found

    def npu(self) -> str | None:
        """The NPU of that target, such as ``ethos-u55``; None when nothing is delegated to one."""
        target = self.target()
        return None if target is None else target.npu


def read(path: Path, data_paths: Sequence[Path] = ()) -> Pte:
    """Read and check the `.pte` at `path` with the data files at `data_paths`. Without any, those in its folder are
    used whose names begin with its own and that it needs. Raises InputError that says what is wrong and where."""
    data = file_bytes(path, ".pte", pte_schema.FILE_IDENTIFIER, _NOT_A_PTE)
    files = [named_data.read_data_file(row) for row in dict.fromkeys(data_paths)]
    try:
        return parse(data, files, path)
    except InputError as error:
        raise InputError(f"{path}: {error.message}", error.hint) from error


def parse(
    data: bytes | bytearray | memoryview, data_files: Sequence[DataFile] = (), path: Path | None = None
) -> Pte:
    """Check the content of a `.pte` file with its `data_files`; without any, they are looked for beside `path`.
    Raises InputError for anything that is malformed or contradicts itself, with the path of the field."""
    file = memoryview(data).toreadonly().cast("B")
    header = _header(file)
    root = FlatBuffer(file[: header.program_bytes], SCHEMA).root(pte_schema.ROOT_TABLE)
    if root.integer("version") != 0:
        raise root.error(f"is {root.integer('version')}, the SDK reads version 0", field="version")
    storage, segments = read_storage(root, file, header, data_files, path)
    plans = tuple(read_plan(table, storage) for table in root.tables("execution_plan"))
    if not plans:
        raise root.error("is empty", field="execution_plan")
    names = [plan.name for plan in plans]
    if len(set(names)) != len(names):
        raise root.error(f"has two methods with the same name among {names}", field="execution_plan")
    return Pte(
        sha256=hashlib.sha256(file).hexdigest(),
        size=len(file),
        header=header,
        version=0,
        plans=plans,
        segments=segments,
        named_data={key: blob.data for key, blob in storage.named.own.items()},
        data=file,
        data_files=storage.named.in_order(),
    )


def _header(file: memoryview) -> Header:
    if bytes(file[4:8]) != pte_schema.FILE_IDENTIFIER:
        raise InputError(
            f"not a .pte file: it has {bytes(file[4:8])!r} instead of {pte_schema.FILE_IDENTIFIER!r}",
            _NOT_A_PTE,
        )
    if bytes(file[_EXTENDED_OFFSET : _EXTENDED_OFFSET + 4]) != _EXTENDED_MAGIC:
        return Header(False, len(file), 0, 0)
    length = _number(file, 12, 4)
    if length < _EXTENDED_MIN_BYTES or _EXTENDED_OFFSET + length > len(file):
        raise InputError(f"damaged .pte file: its header claims {length} bytes", _NOT_A_PTE)
    header = Header(
        extended=True,
        program_bytes=_number(file, 16, 8),
        segment_base=_number(file, 24, 8),
        segment_bytes=_number(file, 32, 8) if length >= _EXTENDED_FULL_BYTES else 0,
    )
    if header.program_bytes > len(file):
        raise InputError(
            f"damaged .pte file: its program has {header.program_bytes:,} bytes, but the file has {len(file):,}",
            "the file was cut off or is damaged",
        )
    if header.segment_base and header.segment_base < header.program_bytes:
        raise InputError("damaged .pte file: its segments start inside its program", _NOT_A_PTE)
    if header.segment_base + header.segment_bytes > len(file):
        raise InputError(
            f"damaged .pte file: its segments end at byte {header.segment_base + header.segment_bytes:,}, but the "
            f"file ends at {len(file):,}",
            "the file was cut off or is damaged",
        )
    return header


def _number(file: memoryview, offset: int, size: int) -> int:
    return int.from_bytes(file[offset : offset + size], "little")


def _delegate_target(delegate: Delegate, vela: VelaBlocks, where: str) -> Target:
    flags = _flags(delegate, where)
    name = flags["accelerator-config"]
    stored = _compile_spec(delegate, "target", where) if "target" in delegate.compile_specs else name
    compiled = accelerator(vela.config_word)
    if stored != name or compiled != name:
        raise InputError(
            f"{where} contradicts itself: Vela was called for {name!r}, the stored target is {stored!r}, the "
            f"command stream is for {compiled!r}",
            _COMPILE_HINT,
        )
    try:
        config = flags.get("config", _VELA_INI)
        if config == _VELA_INI:
            return parse_target(name, flags["system-config"], flags["memory-mode"])
        family, macs = parse_name(name)
        return Target(family.name, macs, flags["system-config"], flags["memory-mode"], config)
    except UsageError as error:
        raise InputError(f"{where}: {error.message}", error.hint) from error


def _flags(delegate: Delegate, where: str) -> dict[str, str]:
    """Vela's flags with a value. A later one overrides an earlier one, as in Vela itself."""
    flags: dict[str, str] = {}
    for word in _compile_spec(delegate, "compile_flags", where).split():
        name, separator, value = word.partition("=")
        if separator:
            flags[name.removeprefix("--")] = value
    for name in ("accelerator-config", "system-config", "memory-mode"):
        if not flags.get(name):
            raise InputError(f"{where} does not record Vela's --{name}", _COMPILE_HINT)
    return flags


def _compile_spec(delegate: Delegate, key: str, where: str) -> str:
    try:
        return delegate.compile_specs[key].decode("utf-8")
    except KeyError:
        raise InputError(f"{where} has no compile specification '{key}'", _COMPILE_HINT) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the compile specification '{key}' is not text", _COMPILE_HINT) from error
