"""Ethos-U products, processors, targets, system configurations and memory modes: the SDK's tables (targets.toml)."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ethosu_sdk.base.errors import UsageError

DEFAULT_TARGET = "ethos-u55-128"

Generation = Literal["u55", "u85"]  # u55 stands for Ethos-U55 and Ethos-U65: one command set


@dataclass(frozen=True)
class Product:
    """One NPU: MACs per cycle in all, cores, the CONFIG register, a core's OFM micro-block (height, width, depth).

    `ofm_micro_block` is None where each operation chooses its own.
    """

    macs: int
    cores: int
    config_word: int
    ofm_micro_block: tuple[int, int, int] | None


@dataclass(frozen=True)
class Family:
    """One NPU family: what its products share, its products by their MACs, its board and its Vela configurations.

    `number` is the product field of the CONFIG register, `default_events` are names and numbers of the PMU events
    that are counted by default. targets.toml explains the other members.
    """

    name: str
    generation: Generation
    number: int
    id_word: int
    axi_beat_bytes: int
    register_window_bytes: int
    transfers_at_work: int
    kernels_at_work: int
    event_counters: int
    default_events: dict[str, int]
    products: dict[int, Product]
    board: str
    default_system_config: str
    default_memory_mode: str
    system_configs: dict[str, tuple[str, ...]]  # name -> the memory modes that go with it

    @property
    def macs(self) -> tuple[int, ...]:
        """The MAC counts of its products."""
        return tuple(self.products)


@dataclass(frozen=True)
class MemoryAreas:
    """Where a memory mode has things: the AXI interface (0 or 1) of constants, arena and cache.

    `cache_bytes` is the size of the cache where the mode limits it.
    """

    constants: int
    arena: int
    cache: int
    cache_bytes: int | None = None


@dataclass(frozen=True)
class Target:
    """An NPU with its MAC count, system configuration and memory mode.

    `vela_config` is the name under which a program has the user's Vela configuration file that the two names are from
    (:func:`stored_name`); it is empty for those of Vela's own vela.ini.
    """

    npu: str
    macs: int
    system_config: str
    memory_mode: str
    vela_config: str = ""

    @property
    def name(self) -> str:
        """The target as the command line spells it, such as ``ethos-u55-128``."""
        return f"{self.npu}-{self.macs}"

    @property
    def family(self) -> Family:
        """The family whose tables this target belongs to."""
        return families()[self.npu]


@dataclass(frozen=True)
class Core:
    """A target without an NPU: a processor, such as ``cortex-m55``, and the board that firmware for it runs on."""

    name: str
    board: str


AnyTarget = Target | Core


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "targets.toml").read_text(encoding="utf-8"))


@functools.cache
def families() -> dict[str, Family]:
    """All families by name, read once from targets.toml."""
    table = _table()
    modes = {name: tuple(values) for name, values in table["memory_modes"].items()}
    return {
        name: _family(name, row | table["pmus"][row["generation"]], modes)
        for name, row in table["families"].items()
    }


def _family(name: str, row: dict[str, Any], modes: dict[str, tuple[str, ...]]) -> Family:
    nested = ("product", "products", "system_configs")
    plain = {key: value for key, value in row.items() if key not in nested}
    return Family(
        name=name,
        number=row["product"],
        products={int(macs): _product(int(macs), facts) for macs, facts in row["products"].items()},
        system_configs={config: modes[key] for config, key in row["system_configs"].items()},
        **plain,
    )


def _product(macs: int, row: dict[str, Any]) -> Product:
    block = row.get("ofm_micro_block")
    return Product(macs, row["cores"], row["config_word"], None if block is None else tuple(block))


def family(npu: str) -> Family:
    """The family called `npu`, such as ``ethos-u55``. UsageError when there is none."""
    if npu not in families():
        raise UsageError(f"unknown NPU '{npu}'", f"one of: {', '.join(families())}")
    return families()[npu]


def accelerator(config_word: int) -> str:
    """The NPU that a CONFIG register stands for, such as ``ethos-u55-128``; bits 3:0 are log2 of its MACs."""
    found = family_by_number(config_word >> 28)
    return f"{found.name if found else f'unknown product {config_word >> 28}'}-{1 << (config_word & 0xF)}"


def family_by_number(number: int) -> Family | None:
    """The family whose CONFIG registers have `number` in bits 31:28; None when there is none."""
    return next((row for row in families().values() if row.number == number), None)


def target_names() -> tuple[str, ...]:
    """Every target with an NPU, such as ``ethos-u55-128``."""
    return tuple(f"{family.name}-{macs}" for family in families().values() for macs in family.macs)


@functools.cache
def cores() -> dict[str, Core]:
    """The targets without an NPU, by name."""
    return {name: Core(name, **row) for name, row in _table()["cores"].items()}


def every_target() -> tuple[str, ...]:
    """The names of all targets: NPUs, then processors."""
    return (*target_names(), *cores())


def suggestion(word: str, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest one first, then all of them."""
    names = list(known)
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    listed = "one of: " + ", ".join(names)
    if not near:
        return listed
    original = next(name for name in names if name.lower() == near[0])
    return f"did you mean '{original}'? {listed}"


def parse_target(name: str, system_config: str | None = None, memory_mode: str | None = None) -> Target:
    """The target called `name`, with the family's defaults for what is not given.

    Raises UsageError for an unknown name or a pairing that the family does not have.
    """
    family, macs = parse_name(name)
    system = system_config or family.default_system_config
    if system not in family.system_configs:
        raise UsageError(
            f"system configuration '{system}' does not belong to {family.name}",
            suggestion(system, family.system_configs),
        )
    mode = memory_mode or family.default_memory_mode
    if memory_mode is None and mode not in family.system_configs[system]:
        mode = _table()["defaults"]["memory_mode_without_dram"]
    if mode not in family.system_configs[system]:
        raise UsageError(
            f"memory mode '{mode}' cannot be used with {system}",
            suggestion(mode, family.system_configs[system]),
        )
    return Target(npu=family.name, macs=macs, system_config=system, memory_mode=mode)


def parse_name(name: str) -> tuple[Family, int]:
    """The family and the MAC count that a target's name stands for. UsageError when there is no such
    target."""
    if name in cores():
        raise UsageError(f"{name} has no NPU", f"name one of: {', '.join(target_names())}")
    npu, _, macs = name.rpartition("-")
    if name not in target_names():
        raise UsageError(f"unknown target '{name}'", _target_hint(name, npu, macs))
    return families()[npu], int(macs)


def _target_hint(name: str, npu: str, macs: str) -> str:
    """The sizes of a family that is named without one, or with one that it does not have; else the nearest target."""
    if name in families():
        return f"add its MACs per cycle: {', '.join(f'{name}-{size}' for size in families()[name].macs)}"
    if npu not in families():
        return suggestion(name, every_target())
    sizes = [str(size) for size in families()[npu].macs]
    others = [other for other in target_names() if other.endswith(f"-{macs}")]
    near = [] if others else difflib.get_close_matches(macs, sizes, n=1)
    return (
        (f"did you mean '{npu}-{near[0]}'? " if near else "")
        + f"{npu} has {', '.join(sizes[:-1])} or {sizes[-1]} MACs per cycle"
        + (f"; with {macs} there are {', '.join(others)}" if others else "")
    )


def stored_name(sha256: str) -> str:
    """The name under which a `.pte` has a user's Vela configuration file: its content decides, its place does not."""
    return f"sha256-{sha256}.ini"
