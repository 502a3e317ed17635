"""Published figures beside Vela's and the model's."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from campaigns.fidelity import networks
from campaigns.fidelity.vela import Compiled, compile_network
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.npu import program, timing
from ethosu_sdk.npu.program import Segment
from tests.published_systems import System, system_of

DATA = Path(__file__).parent / "data"
VELA = "5.0.0"  # that the published streams were made with
_OPERATOR_COLUMN = re.compile(r"(b|z|rd)(\d+)")
_PORTS = {"rd0": (0, False), "wr0": (0, True), "rd1": (1, False), "wr1": (1, True)}
# Published figures below are too small to score: totals of the FVP move in steps of 1,000 cycles.
_BOUNDS = {"networks": 25000, "zero latency": 2500, "beats": 50000}


@dataclass(frozen=True)
class Figure:
    """One published figure: of what, the model's, and Vela's own estimate where there is one.

    `rebuilt` is False, with the reason in `why`, for runs of networks that are not known here. `scored`: it is large
    enough to be judged by.
    """

    run: str
    family: str
    what: str
    published: int
    modelled: int | None = None
    vela: int | None = None
    published_vela: int | None = None
    scored: bool = True
    why: str = ""

    @property
    def error(self) -> float | None:
        """The model's error, as a share of what is published."""
        return None if self.modelled is None or not self.published else self.modelled / self.published - 1

    @property
    def vela_error(self) -> float | None:
        """The error of the Vela that compiled the published run, by its own published estimate."""
        estimate = self.published_vela or self.vela
        return None if estimate is None or not self.published else estimate / self.published - 1

    @property
    def rebuilt_vela_error(self) -> float | None:
        """How far Vela's total for the rebuilt network is from its total in the published run."""
        return None if not (self.vela and self.published_vela) else self.vela / self.published_vela - 1


@dataclass(frozen=True)
class Cell:
    """A published run that can be rebuilt: `published` has cycles and beats by name of column, 0 where unknown."""

    name: str
    run: str
    is_network: bool
    scored: bool
    published: dict[str, int]
    system: System
    compiled: Compiled
    stream: Segment

    def modelled(self) -> int:
        """The model's cycles with the constants of this moment."""
        found = timing.price(
            self.stream.operations, self.compiled.config, self.system.priced, self.stream.waits
        )
        return timing.started(self.system.priced) + found[-1].elapsed


@dataclass(frozen=True)
class Choice:
    """Which rows of a table: those that contain `only`. `vela` compiles them ("": the SDK's own) instead of the
    version of the published run."""

    only: str = ""
    vela: str | None = None

    def rows(self, path: Path) -> Iterator[tuple[dict[str, str], str]]:
        """The rows, each with the version of Vela."""
        for row in rows(path):
            if self.only in " ".join(row.values()):
                yield row, (row.get("vela") or VELA) if self.vela is None else self.vela


ALL = Choice()


def cells(path: Path, choice: Choice = ALL) -> Iterator[Cell]:
    """The runs of a table of networks or of single operators that can be rebuilt, their streams decoded."""
    for row, vela in choice.rows(path):
        if "model" not in row:
            yield from _operator_cells(row, vela)
        elif row["model"] in networks.NETWORKS:
            system = system_of(row["npu"], row["mode"])
            compiled = compiled_for(networks.NETWORKS[row["model"]](), system, vela)
            run = f"{row['model']} {row['npu']} {row['mode']}"
            cycles = _number(row, "active") or _number(row, "total")
            published = {"cycles": cycles} | {name: _number(row, name) for name in _PORTS}
            yield _cell(row["model"], run, True, published, system, compiled)


def _operator_cells(row: dict[str, str], vela: str) -> Iterator[Cell]:
    for column, value in row.items():
        kind = _OPERATOR_COLUMN.fullmatch(column)
        if kind is None or not value or kind[1] == "rd" or row["op"] not in networks.OPERATORS:
            continue
        system = system_of(f"u85-{kind[2]}", "Dedicated", zero_latency=kind[1] == "z")
        compiled = compiled_for(networks.operator(row["op"], int(row["H"]), int(row["W"])), system, vela)
        run = f"{row['op']} {row['H']}x{row['W']} u85-{kind[2]} {kind[1]}"
        yield _cell(run, run, False, {"cycles": int(value)}, system, compiled)


def _cell(
    name: str, run: str, is_network: bool, published: dict[str, int], system: System, compiled: Compiled
) -> Cell:
    scored = published["cycles"] > _BOUNDS["networks" if is_network else "zero latency"]
    stream = program.described(compiled.stream, compiled.config)
    return Cell(name, run, is_network, scored, published, system, compiled, stream)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table; lines that begin with # explain it."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def figures(path: Path, choice: Choice = ALL) -> Iterator[Figure]:
    """The figures of a table of networks or of single operators."""
    for row, vela in choice.rows(path):
        yield from _network(row, vela) if "model" in row else _operators(row, vela)


def priced(compiled: Compiled, system: System) -> tuple[int, dict[tuple[int, bool], int]]:
    """The model's cycles of a stream, and its beats by (port, is write)."""
    memories = system.priced
    stream = program.described(compiled.stream, compiled.config)
    found = timing.price(stream.operations, compiled.config, memories, stream.waits)
    beats: defaultdict[tuple[int, bool], int] = defaultdict(int)
    commands = -(-len(compiled.stream) // compiled.config.beat_bytes)
    beats[memories.command_stream.interface, False] = commands
    for row in found:
        for moved in row.transfers:
            beats[memories.memory(moved.region).interface, moved.stream.is_write] += moved.beats
    return timing.started(memories) + found[-1].elapsed, dict(beats)


def compiled_for(model: bytes, system: System, version: str) -> Compiled:
    """`model` compiled by `version` of Vela for `system`."""
    return compile_network(
        model, version, system.accelerator, system.system_config, system.memory_mode, system.cache_bytes
    )


def _network(row: dict[str, str], vela: str) -> Iterator[Figure]:
    run = f"{row['model']} {row['npu']} {row['mode']}"
    family = row["npu"].partition("-")[0]
    published = {"cycles": _number(row, "active") or _number(row, "total")}
    published |= {name: _number(row, name) for name in _PORTS}
    if modelled := _number(row, "modelled"):  # a table of `ethosu-sdk prove`, which has run the model itself
        scored = published["cycles"] > _BOUNDS["zero latency"]
        yield Figure(run, family, "cycles", published["cycles"], modelled, scored=scored)
        return
    build = networks.NETWORKS.get(row["model"])
    if build is None:
        known = ", ".join(networks.NETWORKS)
        why = f"cannot be rebuilt here: the network's layers are not known (known are {known})"
        yield Figure(run, family, "cycles", published["cycles"], why=why)
        return
    try:
        system = system_of(row["npu"], row["mode"])
    except (KeyError, ValueError, UsageError):
        why = "cannot be rebuilt here: the configuration or its memory mode is not known"
        yield Figure(run, family, "cycles", published["cycles"], why=why)
        return
    compiled = compiled_for(build(), system, vela)
    cycles, beats = priced(compiled, system)
    estimate = _number(row, "vela_total") or None
    scored = published["cycles"] > _BOUNDS["networks"]
    yield Figure(run, family, "cycles", published["cycles"], cycles, compiled.vela_total, estimate, scored)
    for name, key in _PORTS.items():
        if count := published[name]:
            yield Figure(run, family, name, count, beats.get(key, 0), scored=count > _BOUNDS["beats"])


def _number(row: dict[str, str], name: str) -> int:
    return int(row.get(name) or 0)


def _operators(row: dict[str, str], vela: str) -> Iterator[Figure]:
    name = row["op"]
    for column, value in row.items():
        kind = _OPERATOR_COLUMN.fullmatch(column)
        if kind is None or not value:
            continue
        target = f"u85-{kind[2]}"
        run = f"{name} {row['H']}x{row['W']} {target}"
        if name not in networks.OPERATORS:
            yield Figure(
                run, "u85", column, int(value), why="cannot be rebuilt here: the operator is not known"
            )
            continue
        system = system_of(target, "Dedicated", zero_latency=kind[1] == "z")
        model = networks.operator(name, int(row["H"]), int(row["W"]))
        compiled = compiled_for(model, system, vela)
        cycles, beats = priced(compiled, system)
        if kind[1] == "rd":
            count = beats.get((1, False), 0)
            yield Figure(run, "u85", "rd1", int(value), count, scored=False)
        elif kind[1] == "z":
            scored = int(value) > _BOUNDS["zero latency"]
            yield Figure(run, "u85", "cycles without latency", int(value), cycles, scored=scored)
        else:
            yield Figure(run, "u85", "cycles", int(value), cycles, compiled.vela_total)
