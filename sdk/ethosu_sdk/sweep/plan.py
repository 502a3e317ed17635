"""The plan of a sweep: its cells by their keys, the steps they share, and the results that exist."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from msgspec import structs

from ethosu_sdk import schema
from ethosu_sdk.aot import sharing
from ethosu_sdk.aot.sharing.lowered_program import FACTS_NAME
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.files import json_text, opening
from ethosu_sdk.proc.forks import Task
from ethosu_sdk.records import kinds, sweep
from ethosu_sdk.records.printed.sweep_plan import Left
from ethosu_sdk.records.sweep.cell import SweepCell
from ethosu_sdk.results import locations
from ethosu_sdk.steps.shared import compilers
from ethosu_sdk.sweep import evidence, places, rows
from ethosu_sdk.sweep.cells import Cell, Cells, expand
from ethosu_sdk.sweep.configuration import NONE, Configuration
from ethosu_sdk.sweep.configuration.systems import DEFAULT
from ethosu_sdk.sweep.keys import Keys
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.rows import Row
from ethosu_sdk.targets import Target

DEFAULT_FOLDER = Path(locations.BUILD_FOLDER) / "sweep"
# Seconds, where no cell tells: small networks on one core.
_USUAL_S = {"lower": 15.0, "compile": 1.0, NONE: 0.0, "host": 0.6, "qemu": 12.0}
_MOST_FACTS_BYTES = 1 << 24


@dataclass(frozen=True)
class Planned:
    """A cell and the keys of its steps."""

    cell: Cell
    key: str
    compilation: str
    lowering: str
    model_sha256: str

    def row_not_run(self) -> Row:
        """Its row while it is not run."""
        return rows.not_run(self.key, self.model_sha256, self.cell.dimensions())


@dataclass(frozen=True)
class Plan:
    """All cells of a sweep in the folder `store`; `done` are the records of those that are there, by their keys.

    `lowered` are the lowerings that can be used, with the files that each read, `compiled` the compilations of these.
    `changed` says of each result that is done again why it is no evidence.
    """

    configuration: Configuration
    store: Path
    expanded: Cells
    cells: tuple[Planned, ...]
    done: dict[str, SweepCell]
    lowered: dict[str, dict[str, str]]
    compiled: frozenset[str]
    stale: tuple[Path, ...] = field(default=())
    changed: tuple[str, ...] = field(default=())

    @property
    def todo(self) -> tuple[Planned, ...]:
        """The cells that are still to be done."""
        return tuple(row for row in self.cells if row.key not in self.done)

    def total(self) -> Left:
        """All there is, in numbers."""
        return _numbers(self.cells)

    def left(self) -> Left:
        """What is left to do, in numbers."""
        left = self.todo
        todo = [row for row in left if row.compilation not in self.compiled]
        lowerings = {row.lowering for row in todo} - self.lowered.keys()
        return structs.replace(_numbers(left), lowerings=len(lowerings), vela_runs=_vela_runs(todo))

    def record(self) -> sweep.Plan:
        """The plan as the record of a sweep has it."""
        dropped = (sweep.Dropped(reason=name, count=count) for name, count in self.expanded.dropped.items())
        return sweep.Plan(
            **structs.asdict(self.total()), excluded=self.expanded.excluded, dropped=tuple(dropped)
        )

    def estimated_s(self, jobs: int) -> float:
        """A rough guess of the seconds that the rest takes, by the cells that are done, or by small networks."""
        known = [row.wall_time_s for row in self.done.values() if row.status == rows.PASS]
        work_s: float = self.left().lowerings * _USUAL_S["lower"]
        for planned in self.todo:
            usual = _USUAL_S["compile"] + _USUAL_S[planned.cell.simulator]
            work_s += sum(known) / len(known) if known else usual
        return work_s / max(1, jobs)


def _vela_runs(chosen: Sequence[Planned]) -> int:
    """How many compilations of these Vela has a part in: those for an NPU."""
    return len({row.compilation for row in chosen if isinstance(row.cell.target, Target)})


def _numbers(chosen: Sequence[Planned]) -> Left:
    """How many cells these are, and how many steps they are made of."""
    return Left(
        cells=len(chosen),
        lowerings=len({row.lowering for row in chosen}),
        vela_runs=_vela_runs(chosen),
        simulations=sum(row.cell.simulator != NONE for row in chosen),
    )


def folder_of(configuration: Configuration, chosen: Path | None) -> Path:
    """The folder of a sweep's results."""
    return chosen or DEFAULT_FOLDER / configuration.name


def make(configuration: Configuration, store: Path, options: SweepOptions) -> Plan:
    """The plan of a sweep whose results go to `store`; nothing is written. InputError when there is nothing to do."""
    expanded = expand(configuration)
    keys = Keys(configuration.folder, trust=options.trust, pricing=_pricing(configuration, options))
    planned: dict[str, Planned] = {}
    for cell in expanded.cells:
        row = Planned(
            cell, keys.cell(cell), keys.compilation(cell), keys.lowering(cell), keys.model_sha256(cell.model)
        )
        planned.setdefault(row.key, row)
    changed: dict[str, None] = {}
    done = {}
    for key in planned:
        record = _cell(store, key, keys, configuration, options)
        if record is not None and _is_whole(places.cell(store, key), kinds.SWEEP_CELL.file, changed):
            done[key] = record
    todo = [row for row in planned.values() if row.key not in done]
    lowered, stale = _lowered(store, planned.values(), keys)
    for key in {row.lowering for row in todo} & lowered.keys():
        if not _is_whole(places.lowered(store, key), FACTS_NAME, changed):
            del lowered[key]
            stale.append(places.lowered(store, key))
    compiled = {
        row.compilation
        for row in planned.values()
        if row.lowering in lowered and _reads_of(store, row.compilation) == lowered[row.lowering]
    }
    for key in {row.compilation for row in todo} & compiled:
        if not _is_whole(places.compiled(store, key), kinds.COMPILE.file, changed):
            compiled.remove(key)
    return Plan(
        configuration,
        store,
        expanded,
        tuple(planned.values()),
        done,
        lowered,
        frozenset(compiled),
        tuple(stale),
        tuple(changed),
    )


def _is_whole(folder: Path, needed: str, changed: dict[str, None]) -> bool:
    """Whether the task's `folder` is as it was written; else `changed` gets the reason. Of a cell, records count."""
    counts = evidence.is_record if needed == kinds.SWEEP_CELL.file else evidence.is_any
    reason = evidence.problem(folder, needed, counts)
    if reason:
        changed[reason] = None
    return not reason


def _cell(
    store: Path, key: str, keys: Keys, configuration: Configuration, options: SweepOptions
) -> SweepCell | None:
    """The record of a cell that is there, and need not be done again."""
    path = places.cell(store, key) / kinds.SWEEP_CELL.file
    if not path.is_file():
        return None
    try:
        record = json_text.read_json(path)
        schema.check(record, str(path))
    except SdkError:
        return None  # it is made anew
    cell = kinds.SWEEP_CELL.convert(record)
    again = options.retry and cell.status in rows.UNFINISHED
    if cell.key != key or again or _more_is_allowed(cell, configuration):
        return None
    return cell if keys.unchanged(cell.reads) else None


def _more_is_allowed(record: SweepCell, configuration: Configuration) -> bool:
    """Whether a task that reached its limit may take more now."""
    name = {rows.TIMEOUT: "time_s", rows.OUT_OF_MEMORY: "memory_bytes"}.get(record.status)
    before = None if name is None else getattr(record.limits, name)
    if name is None or before is None:
        return False
    now = getattr(configuration.limits, name)
    return bool(now is None or now > before)


def found_later(plan: Plan, missing: Iterable[Planned], options: SweepOptions) -> dict[str, SweepCell]:
    """The records, by their keys, of cells that ended after the plan was made."""
    keys = Keys(plan.configuration.folder, trust=options.trust, pricing=_pricing(plan.configuration, options))
    as_is = replace(options, retry=False)
    found = {row.key: _cell(plan.store, row.key, keys, plan.configuration, as_is) for row in missing}
    return {key: record for key, record in found.items() if record is not None}


def _reads_of(store: Path, compilation: str) -> dict[str, str] | None:
    """The files that a compilation rests on; None where there is no whole one."""
    try:
        return json_text.read_json(places.compiled(store, compilation) / places.READS_NAME)
    except SdkError:
        return None


def _lowered(
    store: Path, planned: Iterable[Planned], keys: Keys
) -> tuple[dict[str, dict[str, str]], list[Path]]:
    """The lowerings that can be used, with the files that they read, and the folders of those that cannot: a file
    that was read is another now."""
    good: dict[str, dict[str, str]] = {}
    stale: dict[Path, None] = {}
    for row in planned:
        folder = places.lowered(store, row.lowering)
        if row.lowering in good or not folder.is_dir():
            continue
        try:
            reads = json.loads(opening.text(folder / FACTS_NAME, _MOST_FACTS_BYTES))["reads"]
            fits = keys.unchanged(reads)
        except (InputError, OSError, ValueError, KeyError, AttributeError, TypeError):
            fits = False
        if fits:
            good[row.lowering] = reads
        else:
            stale[folder] = None
            stale[places.compiled(store, row.compilation)] = None
    return good, list(stale)


def remove_stale(plan: Plan) -> None:
    """Remove what the plan does not use, because it was made from other files."""
    for folder in plan.stale:
        shutil.rmtree(folder, ignore_errors=True)


def _pricing(configuration: Configuration, options: SweepOptions) -> Callable[[Cell], Sequence[object]]:
    """What the time of an inference depends on beside its program."""
    return lambda cell: (configuration.system(cell.system).sha256, options.cpu_clock_mhz)


def tasks(plan: Plan, planned: Planned, token: str, options: SweepOptions) -> dict[str, Task]:
    """The tasks of a cell by their steps."""
    cell, configuration = planned.cell, plan.configuration
    system = configuration.system(cell.system)
    is_default = system is configuration.systems[DEFAULT]
    vela_config = options.vela_config if is_default else None
    common: Task = {
        "store": str(plan.store.absolute()),
        "cwd": str(configuration.folder),
        "token": token,
        "tools": compilers.identity(),
        "time_s": configuration.limits.time_s,
        "memory_bytes": configuration.limits.memory_bytes,
        "model": cell.model,
        "model_sha256": planned.model_sha256,
        "quantize": cell.quantize,
        "samples": cell.samples,
        "vela": cell.vela,
        "trust": options.trust,
        "vela_config": None if vela_config is None else str(vela_config.absolute()),
        "system": system.argument,
        "cpu_clock_mhz": options.cpu_clock_mhz,
        "lowering": planned.lowering,
        "compilation": planned.compilation,
    }
    target = asdict(cell.target)
    lowered_for = sharing.representative(cell.target)
    return {
        "lower": {**common, "step": "lower", "key": planned.lowering, "target": asdict(lowered_for)},
        "compile": {**common, "step": "compile", "key": planned.compilation, "target": target},
        "finish": {
            **common,
            "step": "finish",
            "key": planned.key,
            "target": target,
            "simulator": cell.simulator,
            "board": cell.board,
            "inputs": cell.inputs,
            "dimensions": cell.dimensions(),
        },
    }
