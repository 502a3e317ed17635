"""Board packs: a folder with board.toml for each board (docs/guide/boards.md describes the form), the SDK's in
board_packs/ and those of the user's own folder; and the boards among them that firmware can be built for.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from ethosu_sdk.base import toml_source
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import families, suggestion
from ethosu_sdk.base.toml_source import Rows, TomlKind, TomlSource

OWN_PACKS = Path(__file__).parent / "board_packs"
PACK_FILE = "board.toml"
PACKS_VARIABLE = "ETHOSU_SDK_BOARDS"  # a folder with packs of the user's
FIRMWARE_FOLDER = "firmware"  # of a user's pack: CMakeLists.txt, linker.ld and what is not in board/common
_KIND = TomlKind("a board profile", most_bytes=256 << 10, most_lines=5000)
_MERGED = (
    "cpu",
    "console",
    "memories",
    "documents",
    "sources",
)  # `like` gives rows that a pack does not have
_OWN = ("firmware", "qemu", "hardware", "pools")  # what `like` does not give: it is of one board
# What linker.ld and placement.ld call the places of sections and pools.
_ALIASES = {"VECTORS", "CODE", "DATA", "STACK", "MODEL", "MODEL_DATA", "SCRATCH", "FAST_SCRATCH", "PLANNED"}
_ALIASES |= {"METHOD_POOL", "INPUT_IMAGE"}
PackTable = dict[str, Any]
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_NO_PACKS = ("common", "host")  # other folders of firmware/board
Address = Annotated[int, Meta(ge=0, lt=1 << 32)]
Interrupt = Annotated[int, Meta(ge=0, le=1023)]
Word = Annotated[str, Meta(pattern=r"\A[A-Za-z][A-Za-z0-9_.-]{0,63}\Z", extra={"words": "a word"})]


def pack_files() -> dict[str, Path]:
    """The file of each pack by name: the SDK's, and those in the folder that ETHOSU_SDK_BOARDS names."""
    folders = [Path(os.environ[PACKS_VARIABLE])] if os.environ.get(PACKS_VARIABLE) else []
    found = (path for folder in (*folders, OWN_PACKS) for path in sorted(folder.glob(f"*/{PACK_FILE}")))
    return {path.parent.name: path for path in found if is_pack_name(path.parent.name)}


def is_pack_name(name: str) -> bool:
    """Whether a pack may be called `name`, which becomes a part of C++ source and of paths."""
    return _NAME.fullmatch(name) is not None and name not in _NO_PACKS


def read_pack(path: Path) -> tuple[TomlSource, PackTable, PackTable]:
    """The pack in the file `path`: its own tables, and these with what it takes over from the one that it is `like`.

    InputError for a file that is not TOML, and for an unknown or circular `like`.
    """
    source, table = _read(path)
    merged, names = dict(table), set[str]()
    while "like" in merged:
        like = source.convert(merged["like"], str, ("like",))
        packs = {name: file for name, file in pack_files().items() if file != path and name not in names}
        if like not in packs:
            raise source.unknown(("like",), "there is no board profile", like, packs)
        names.add(like)
        merged = _merged(merged, _read(packs[like])[1])
    return source, table, merged


def _read(path: Path) -> tuple[TomlSource, PackTable]:
    return _read_own(path) if path.is_relative_to(OWN_PACKS) else toml_source.read_toml(path, _KIND)


@functools.cache
def _read_own(path: Path) -> tuple[TomlSource, PackTable]:
    return toml_source.read_toml(path, _KIND)


def _merged(row: PackTable, base: PackTable) -> PackTable:
    row = {key: part for key, part in row.items() if key != "like"}
    base = {key: part for key, part in base.items() if key not in _OWN}
    both = (row, base)
    tables = [key for key in _MERGED if all(isinstance(part.get(key, {}), dict) for part in both)]
    merged = {key: {**base.get(key, {}), **row.get(key, {})} for key in tables}
    if "systems" in row:
        base.pop("areas", None)  # which are by system
    return {**base, **row, **{key: rows for key, rows in merged.items() if rows}}


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the processor of a board finds the NPU or the console: the registers through their Non-secure and Secure
    alias, and the number of the interrupt at the processor. `device` is the kind of UART."""

    base: Address | None = None
    secure_base: Address | None = None
    irq: Interrupt | None = None
    device: Word | None = None
    baud: Annotated[int, Meta(ge=1, le=10**8)] | None = None

    @property
    def bases(self) -> tuple[int, ...]:
        """Both aliases, the Secure one last."""
        return tuple(base for base in (self.base, self.secure_base) if base is not None)


NO_DEVICE = Device()


class _Memory(Struct, forbid_unknown_fields=True):
    access: Word
    origin: Address
    size_bytes: Annotated[int, Meta(ge=1, le=1 << 32)]


class _Firmware(Struct, forbid_unknown_fields=True):
    clock_hz: Annotated[int, Meta(ge=1000, le=10**11)]
    irq_count: Annotated[int, Meta(ge=16, le=1024)]
    fast: Word
    bulk: Word
    near: Word
    memories: Annotated[dict[Word, _Memory], Meta(min_length=1, max_length=32)]
    simulators: Rows[list[Word]] = {}
    on_request: list[Word] = []


@dataclass(frozen=True)
class Memory:
    """One memory of a board; `origin` is the address that the firmware uses, `access` the linker's attributes."""

    name: str
    access: str
    origin: int
    size_bytes: int

    def holds(self, address: int) -> bool:
        """Whether `address` lies in this memory."""
        return self.origin <= address < self.origin + self.size_bytes


@dataclass(frozen=True)
class Board:
    """A board that firmware can be built for, with its NPUs in each simulator.

    `fast` is the memory next to the NPU, `bulk` takes everything large, `near` the method pool unless it is large.
    `folder` has the pack's own sources of firmware; None for those in firmware/board/.
    """

    name: str
    core_hz: int
    npu_bases: tuple[int, ...]
    uart0_base: int
    npu_irq: int
    irq_count: int
    fast: Memory
    bulk: Memory
    near: Memory
    memories: tuple[Memory, ...]
    simulators: dict[str, tuple[str, ...]]
    on_request: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def npus(self) -> tuple[str, ...]:
        """Every NPU that this board can have somewhere, such as ``ethos-u55``."""
        return tuple(dict.fromkeys(npu for row in self.simulators.values() for npu in row))

    def is_in(self, simulator: str, npu: str | None) -> bool:
        """Whether `simulator` has this board with `npu` (None: with any)."""
        npus = self.simulators.get(simulator, ())
        return bool(npus) if npu is None else npu in npus

    def is_default_in(self, simulator: str, npu: str | None) -> bool:
        """Whether `simulator` may take this board for a program with `npu` when none is asked for."""
        return simulator not in self.on_request and self.is_in(simulator, npu)


def has_table(path: Path, table: str) -> bool:
    """Whether a pack has such a table. Names are options of the command line, which must not wait for a parser."""
    try:
        with path.open("rb") as file:
            return f"\n[{table}]".encode() in file.read(_KIND.most_bytes)
    except OSError:
        return False  # whoever asks for this pack is told


def _names_with(table: str) -> tuple[str, ...]:
    return tuple(name for name, path in pack_files().items() if has_table(path, table))


BOARD_NAMES = tuple(sorted(_names_with("firmware"), key=lambda name: not (OWN_PACKS / name).is_dir()))
QEMU_NAMES = _names_with("qemu")


def system_names() -> tuple[str, ...]:
    """The packs that --system takes: all but the SDK's of what is simulated, which is no board of anybody's."""
    simulated = {name for name in (*BOARD_NAMES, *QEMU_NAMES) if (OWN_PACKS / name).is_dir()}
    return tuple(sorted(set(pack_files()) - simulated))


@functools.cache
def all_boards() -> dict[str, Board]:
    """All boards that firmware can be built for, by name: the SDK's first."""
    return {name: board_in(name, pack_files()[name]) for name in BOARD_NAMES}


@functools.cache
def pack_tables(name: str) -> tuple[TomlSource, PackTable]:
    """The tables of the pack called `name` for modules that read their own of it, with those that it is `like`."""
    source, _, table = read_pack(pack_files()[name])
    return source, table


def device_of(source: TomlSource, table: PackTable, name: str) -> Device:
    """What the pack says of its ``npu`` or ``console``."""
    return source.convert(table.get(name, {}), Device, (name,))


def board_in(name: str, path: Path) -> Board:
    """The board that the pack at `path` has firmware for. InputError, with the line, for what is wrong in it."""
    source, _, table = read_pack(path)
    row = source.convert(table["firmware"], _Firmware, ("firmware",))
    npu, console = device_of(source, table, "npu"), device_of(source, table, "console")
    if not npu.bases or npu.irq is None or not console.bases:
        raise source.wrong(("firmware",), "firmware needs the base of npu and console, and the irq of npu")
    memories = {
        key: Memory(key, memory.access, memory.origin, memory.size_bytes)
        for key, memory in row.memories.items()
    }
    for key in _ALIASES & set(memories):
        raise source.wrong(
            ("firmware", "memories", key),
            f"no memory can be called {key}: the linker script calls a place so",
        )
    for role in (row.fast, row.bulk, row.near):
        if role not in memories:
            raise source.unknown(("firmware",), "firmware.memories has no", role, memories)
    for simulator, npus in row.simulators.items():
        for known in npus:
            if known not in families():
                raise source.unknown(("firmware", "simulators", simulator), "no NPU", known, families())
    folder = path.parent / FIRMWARE_FOLDER
    return Board(
        name=name,
        core_hz=row.clock_hz,
        npu_bases=npu.bases,
        uart0_base=console.bases[-1],
        npu_irq=npu.irq,
        irq_count=row.irq_count,
        fast=memories[row.fast],
        bulk=memories[row.bulk],
        near=memories[row.near],
        memories=tuple(memories.values()),
        simulators={key: tuple(npus) for key, npus in row.simulators.items()},
        on_request=tuple(row.on_request),
        folder=folder if folder.is_dir() else None,
    )


def core_of_board(name: str) -> str:
    """The processor of the board called `name`, such as ``cortex-m55``; of QEMU's boards too."""
    found: str = pack_tables(name)[1]["cpu"]["core"]
    return found


def board_named(name: str) -> Board:
    """The board called `name`; UsageError with the known ones when there is none."""
    if name not in BOARD_NAMES:
        raise UsageError(f"no firmware can be built for board '{name}'", suggestion(name, BOARD_NAMES))
    return all_boards()[name]
