"""The cells of a sweep: every possible combination of its values, and why others are impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import NamedTuple

from ethosu_sdk.base.boards import BOARD_NAMES
from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.targets import AnyTarget, Core, cores, parse_name, parse_target, target_names
from ethosu_sdk.compile import vela_versions
from ethosu_sdk.compile.program_options import QUANTIZE_CHOICES
from ethosu_sdk.compile.vela_config import target_in
from ethosu_sdk.npu.timing.systems import MODE, SYSTEM
from ethosu_sdk.simulate.program_board import choose_board
from ethosu_sdk.sweep.sweep_configuration import DEFAULT, HOST, NONE, QEMU, SIMULATORS, Configuration, System

MOST_CELLS = 20_000  # more do not fit into a record that can be read


@dataclass(frozen=True)
class Cell:
    """One pairing. `board` and `inputs` are None where nothing runs on one, or runs at all. `samples` is the file
    that its model is evaluated on, None where it is not. `system` is the board profile that it is compiled for and
    priced on, as the sweep names it.
    """

    model: str
    target: AnyTarget
    quantize: str
    vela: str
    simulator: str
    board: str | None
    inputs: str | None
    samples: str | None = None
    system: str | None = None

    @property
    def configuration(self) -> tuple[str, str]:
        """System configuration and memory mode; NONE for a processor."""
        if isinstance(self.target, Core):
            return NONE, NONE
        return self.target.system_config, self.target.memory_mode

    def dimensions(self) -> dict[str, str | None]:
        system_config, memory_mode = self.configuration
        return {
            "model": self.model,
            "target": self.target.name,
            "system": self.system,
            "system_config": system_config,
            "memory_mode": memory_mode,
            "quantize": self.quantize,
            "vela": NONE if isinstance(self.target, Core) else self.vela,
            "simulator": self.simulator,
            "board": self.board,
            "inputs": self.inputs,
        }

    @property
    def label(self) -> str:
        words = (*self.configuration, self.system or NONE, self.quantize, self.simulator)
        named = (word for word in words if word not in (DEFAULT, NONE))
        return " ".join((self.model, self.target.name, *named))


@dataclass(frozen=True)
class Cells:
    """The cells, each once, how many pairings were dropped for which reason, and how many were excluded."""

    cells: tuple[Cell, ...]
    dropped: Mapping[str, int]
    excluded: int


def expand(configuration: Configuration) -> Cells:
    """The cells of a sweep. InputError when there are none, or too many."""
    values = configuration.values
    found: dict[Cell, None] = {}
    dropped: Counter[str] = Counter()
    excluded = 0
    sets = [(values, configuration.exclude)]
    for index, row in enumerate(configuration.include):
        sets.append(({**values, **row}, ()))
        for name in ("model", "target"):
            if not sets[-1][0][name]:
                message = f"this include has no {name}, and the sweep names none"
                raise configuration.source.wrong(("include", index), message)
    for whole, exclude in sets:
        for cell in _product(whole, configuration.systems, dropped):
            if any(_fits(cell, other) for other in exclude):
                excluded += 1
                continue
            found[replace(cell, samples=configuration.samples(cell.model))] = None
            if len(found) > MOST_CELLS:
                message = f"there are more than {MOST_CELLS:,} cells, the most for one sweep"
                raise InputError(f"{configuration.source.path}: {message}")
    if not found:
        reasons = "".join(f"\n  {count:,} dropped: {reason}" for reason, count in dropped.items())
        raise InputError(f"{configuration.source.path}: no cells are left to do{reasons}")
    return Cells(tuple(found), dict(dropped), excluded)


def _product(
    values: Mapping[str, Sequence[str]], systems: Mapping[str, System], dropped: Counter[str]
) -> Iterator[Cell]:
    found = (find(values, word, systems[word]) for word in values["system"] for find in (_targets, _cores))
    targets = [row for part in found for row in part]
    ways = {row.name: list(_ways(values, row.name)) for row in targets}
    quantizations = _matching(values["quantize"], QUANTIZE_CHOICES)
    compilers = [vela_versions.own_version() if word == DEFAULT else word for word in values["vela"]]
    for model, row, quantize, vela in product(values["model"], targets, quantizations, compilers):
        for way in ways[row.name]:
            why, compiler = row.reason or way.reason, vela
            if isinstance(row.target, Core):  # Vela does not see the program: one cell, whatever its version
                compiler = vela_versions.own_version()
                why = f"there is no int16 for {row.name}" if quantize == "int16" else why
            if row.target is None or why:
                dropped[why] += 1
            else:
                yield Cell(model, row.target, quantize, compiler, *way[:3], system=row.system)


def _matching(words: Sequence[str], known: Sequence[str], *, others: bool = False) -> list[str]:
    """DEFAULT as it is, and the known names that the others fit; with `others`, words that fit none as well."""
    found: dict[str, None] = {}
    for word in words:
        names = [DEFAULT] if word == DEFAULT else [name for name in known if fnmatchcase(name, word)]
        found.update(dict.fromkeys(names or ([word] if others else ())))
    return list(found)


class _TargetChoice(NamedTuple):
    """A target by its `name` in a `system`, or the `reason` why there is none."""

    name: str
    system: str | None
    target: AnyTarget | None = None
    reason: str = ""


def _targets(values: Mapping[str, Sequence[str]], word: str, system: System) -> Iterator[_TargetChoice]:
    """Every pairing of target, system configuration and memory mode in the `system` that the sweep calls `word`. A
    user's file does not say which of them go together."""
    config, called = system.config, system.name if word == DEFAULT else word
    for name in _matching(values["target"], target_names()):
        family = parse_name(name)[0]
        systems = tuple(family.system_configs) if config is None else config.ini.names(SYSTEM)
        for chosen in _matching(values["system_config"], systems, others=True):
            own = family.default_system_config if chosen == DEFAULT else chosen
            modes = family.system_configs.get(own, ()) if config is None else config.ini.names(MODE)
            for mode in _matching(values["memory_mode"], modes, others=True):
                asked = [None if row == DEFAULT else row for row in (chosen, mode)]
                try:
                    target = parse_target(name, *asked) if config is None else target_in(config, name, *asked)
                    yield _TargetChoice(name, called, target)
                except SdkError as error:
                    yield _TargetChoice(name, called, reason=error.message)


def _cores(values: Mapping[str, Sequence[str]], word: str, system: System) -> Iterator[_TargetChoice]:
    """The processors that are targets. A pattern such as * stands for NPUs: a processor is a baseline, which a sweep
    asks for by its name or by a pattern that begins like it."""
    board = None if system.config is None else system.config.board
    called = system.name if word == DEFAULT else word
    patterns = [row for row in values["target"] if row.startswith("cortex-m")]
    for name in (name for name in cores() if any(fnmatchcase(name, row) for row in patterns)):
        if board is not None and board.cpu.core != name:
            yield _TargetChoice(name, called, reason=f"{board.name} has a {board.cpu.core}, not a {name}")
        else:
            yield _TargetChoice(name, called, cores()[name])


class _Way(NamedTuple):
    """How a program is run, or the `reason` why it cannot be."""

    simulator: str
    board: str | None = None
    inputs: str | None = None
    reason: str = ""


def _ways(values: Mapping[str, Sequence[str]], name: str) -> Iterator[_Way]:
    core = cores().get(name)
    npu, own = (None, core.board) if core is not None else (name.rpartition("-")[0], None)
    for simulator in _matching(values["simulator"], SIMULATORS):
        if simulator == NONE:
            yield _Way(NONE)
            continue
        for inputs in values["inputs"]:
            if simulator == HOST:
                yield _Way(HOST, None, inputs)
                continue
            for board in _matching(values["board"], BOARD_NAMES):
                try:
                    choice = choose_board(npu, own if board == DEFAULT else board, QEMU)
                    yield _Way(QEMU, choice.board, inputs)
                except SdkError as error:
                    yield _Way(QEMU, None, inputs, error.message)


def _fits(cell: Cell, row: Mapping[str, Sequence[str]]) -> bool:
    known = cell.dimensions()
    return all(any(fnmatchcase(known[name] or "", word) for word in words) for name, words in row.items())
