"""The plan of a sweep: its cells by the keys of their tasks, the steps they share, and the results that exist."""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from ethosu_sdk.base import filesystem, json_text, resources, tools
from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.forks import Task
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import child_process, shared_lowering, zoo
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec, parse_model_spec
from ethosu_sdk.compile.shared_lowering import FACTS_NAME
from ethosu_sdk.records import bundle, kinds, result_files, sweep, validation
from ethosu_sdk.records.sweep import Left, SweepCell
from ethosu_sdk.sweep import cell_rows
from ethosu_sdk.sweep.cells import Cell, Cells, expand
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.sweep_configuration import DEFAULT, NONE, QEMU, Configuration


def _digest(basis: Mapping[str, Any]) -> str:
    return filesystem.sha256_bytes(json.dumps(basis, sort_keys=True).encode())


@functools.cache
def _simulator_identity(simulator: str) -> Record:
    """What a simulator has beside the SDK's own sources."""
    basis: Record = {}
    if simulator == QEMU:
        basis["firmware"] = child_process.sources_digest(resources.directory("firmware"))
        for name in ("qemu-system-arm", "arm-none-eabi-g++"):
            basis[name] = tools.probe(name).version if name in tools.tool_table() else ""
    return basis


class Keys:
    """The keys of one sweep's tasks: digests of everything that shapes their results and is known beforehand. Files
    are named from `folder`; `pricing` is what a cell's times depend on."""

    def __init__(
        self, folder: Path, *, trust: bool, pricing: Callable[[Cell], Sequence[object]] = lambda _: ()
    ) -> None:
        self._folder = folder
        self._pricing = pricing
        self._trust = trust
        self._files: dict[Path, str] = {}

    def spec(self, model: str) -> ModelSpec:
        return parse_model_spec(model if model.startswith("zoo:") else str(self._folder / model))

    def model_sha256(self, model: str) -> str:
        spec = self.spec(model)
        return self._file(spec.path if spec.path is not None else zoo.source(str(spec.entry)))

    def lowering(self, cell: Cell) -> str:
        return _digest(
            {
                "step": "lower",
                "tools": child_process.compiler_identity(),
                "model": cell.model,
                "sha256": self.model_sha256(cell.model),
                "entry": self.spec(cell.model).entry,
                "variant": shared_lowering.lowering_variant(cell.target),
                "quantize": cell.quantize,
                "samples": None if cell.samples is None else self._file(self._folder / cell.samples),
                "trust": self._trust,
            }
        )

    def compilation(self, cell: Cell) -> str:
        """The key of its compilation, which is executed too: its check and its accuracy are of the whole SDK."""
        target = cell.target
        names = [target.name, *cell.configuration]
        names += [target.vela_config] if isinstance(target, Target) and target.vela_config else []
        return _digest(
            {
                "step": "compile",
                "sdk": child_process.sources_digest(resources.PACKAGE_ROOT),
                "lowering": self.lowering(cell),
                "target": names,
                "vela": cell.vela,
            }
        )

    def cell(self, cell: Cell) -> str:
        inputs = cell.inputs
        files = None if inputs in (None, DEFAULT) else self._file(self._folder / str(inputs))
        pricing = list(self._pricing(cell))
        run = {} if cell.simulator == NONE else _simulator_identity(cell.simulator)
        return _digest(
            {
                "step": "cell",
                "compilation": self.compilation(cell),
                "run": [cell.simulator, cell.board, files, run, *(pricing if any(pricing) else ())],
            }
        )

    def unchanged(self, reads: Mapping[str, str]) -> bool:
        """Whether files that were read are as they were then."""
        paths = {self._folder / name: digest for name, digest in reads.items()}
        return all(path.is_file() and self._file(path) == digest for path, digest in paths.items())

    def _file(self, path: Path) -> str:
        if path not in self._files:
            self._files[path] = filesystem.sha256_file(path)
        return self._files[path]


def _evidence_problem(folder: Path, needed: str, suffix: str) -> str:
    """Why the files of `folder` whose names end in `suffix` are no evidence; nothing when its manifest lists them as
    they are, and one whose name fits the pattern `needed` among them."""
    try:  # the manifest is not held against its schema: there is one for each of many thousand cells
        manifest = json_text.read_json(folder / bundle.MANIFEST_NAME)
        if manifest["status"] != bundle.COMPLETE:
            return f"{folder} is incomplete"
        listed = {row["path"]: row["sha256"] for row in manifest["files"] if row["path"].endswith(suffix)}
        if not fnmatch.filter(listed, needed):
            return f"the manifest of {folder} does not list {needed}"
        for name, sha256 in listed.items():
            path = folder / name
            if not path.is_file() or filesystem.sha256_file(path) != sha256:
                return f"{path} is not what was written"
    except SdkError as error:
        return error.message
    except (AttributeError, KeyError, TypeError):
        return f"the manifest of {folder} is damaged"
    return ""


DEFAULT_FOLDER = Path(result_files.BUILD_FOLDER) / "sweep"
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
    stale: tuple[Path, ...]
    changed: tuple[str, ...]

    @property
    def todo(self) -> tuple[Planned, ...]:
        return tuple(row for row in self.cells if row.key not in self.done)

    def total(self) -> Left:
        return _numbers(self.cells)

    def left(self) -> Left:
        todo = [row for row in self.todo if row.compilation not in self.compiled]
        lowerings = {row.lowering for row in todo} - self.lowered.keys()
        runs = _numbers(todo).vela_runs
        return structs.replace(_numbers(self.todo), lowerings=len(lowerings), vela_runs=runs)

    def record(self) -> sweep.Plan:
        known = self.expanded
        dropped = tuple(sweep.Dropped(reason=name, count=count) for name, count in known.dropped.items())
        return sweep.Plan(**structs.asdict(self.total()), excluded=known.excluded, dropped=dropped)

    def estimated_s(self, jobs: int) -> float:
        """A rough guess of the seconds that the rest takes, by the cells that are done, or by small networks."""
        known = [row.wall_time_s for row in self.done.values() if row.status == cell_rows.PASS]
        work_s: float = self.left().lowerings * _USUAL_S["lower"]
        for planned in self.todo:
            usual = _USUAL_S["compile"] + _USUAL_S[planned.cell.simulator]
            work_s += sum(known) / len(known) if known else usual
        return work_s / max(1, jobs)


def _numbers(chosen: Sequence[Planned]) -> Left:
    """How many cells these are, and how many steps they are made of. Vela has a part in those for an NPU."""
    return Left(
        cells=len(chosen),
        lowerings=len({row.lowering for row in chosen}),
        vela_runs=len({row.compilation for row in chosen if isinstance(row.cell.target, Target)}),
        simulations=sum(row.cell.simulator != NONE for row in chosen),
    )


def make_plan(configuration: Configuration, store: Path, options: SweepOptions) -> Plan:
    """The plan of a sweep whose results go to `store`; nothing is written. InputError when there is nothing to do."""
    expanded = expand(configuration)
    keys = Keys(configuration.folder, trust=options.trust, pricing=_pricing(configuration, options))
    planned: dict[str, Planned] = {}
    for cell in expanded.cells:
        steps = (keys.cell(cell), keys.compilation(cell), keys.lowering(cell))
        row = Planned(cell, *steps, keys.model_sha256(cell.model))
        planned.setdefault(row.key, row)
    changed: dict[str, None] = {}
    done = {}
    for key in planned:
        record = _finished_cell(store, key, keys, configuration, options)
        folder = cell_rows.task_folder(store, cell_rows.CELLS, key)
        if record is not None and _is_whole(folder, kinds.SWEEP_CELL.file, changed):
            done[key] = record
    todo = [row for row in planned.values() if row.key not in done]
    lowered, stale = _usable_lowerings(store, planned.values(), keys)
    for key in {row.lowering for row in todo} & lowered.keys():
        folder = cell_rows.task_folder(store, cell_rows.LOWERED, key)
        if not _is_whole(folder, FACTS_NAME, changed):
            del lowered[key]
            stale.append(folder)
    compiled = {
        row.compilation
        for row in planned.values()
        if row.lowering in lowered and _reads_of(store, row.compilation) == lowered[row.lowering]
    }
    for key in {row.compilation for row in todo} & compiled:
        if not _is_whole(cell_rows.task_folder(store, cell_rows.COMPILED, key), kinds.COMPILE.file, changed):
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
    """Whether the task's `folder` is as it was written; else `changed` gets the reason. Of a cell, records count, not
    its arrays and programs, which may be large."""
    reason = _evidence_problem(folder, needed, ".json" if needed == kinds.SWEEP_CELL.file else "")
    if reason:
        changed[reason] = None
    return not reason


def _finished_cell(
    store: Path, key: str, keys: Keys, configuration: Configuration, options: SweepOptions
) -> SweepCell | None:
    """The record of a cell that is there, and need not be done again."""
    path = cell_rows.task_folder(store, cell_rows.CELLS, key) / kinds.SWEEP_CELL.file
    if not path.is_file():
        return None
    try:
        record = json_text.read_json(path)
        validation.check_record(record, str(path))
    except SdkError:
        return None  # it is made anew
    cell = kinds.SWEEP_CELL.convert(record)
    again = options.retry and cell.status in cell_rows.UNFINISHED
    # A task that reached its limit is done again if it may take more now.
    name = {cell_rows.TIMEOUT: "time_s", cell_rows.OUT_OF_MEMORY: "memory_bytes"}.get(cell.status, "")
    before, now = getattr(cell.limits, name, None), getattr(configuration.limits, name, None)
    is_more = before is not None and (now is None or now > before)
    is_kept = cell.key == key and not again and not is_more and keys.unchanged(cell.reads)
    return cell if is_kept else None


def found_later(plan: Plan, missing: Iterable[Planned], options: SweepOptions) -> dict[str, SweepCell]:
    """The records, by their keys, of cells that ended after the plan was made."""
    keys = Keys(plan.configuration.folder, trust=options.trust, pricing=_pricing(plan.configuration, options))
    as_is = replace(options, retry=False)
    found = {row.key: _finished_cell(plan.store, row.key, keys, plan.configuration, as_is) for row in missing}
    return {key: record for key, record in found.items() if record is not None}


def _reads_of(store: Path, compilation: str) -> dict[str, str] | None:
    folder = cell_rows.task_folder(store, cell_rows.COMPILED, compilation)
    try:
        return json_text.read_json(folder / cell_rows.READS_NAME)
    except SdkError:
        return None


def _usable_lowerings(
    store: Path, planned: Iterable[Planned], keys: Keys
) -> tuple[dict[str, dict[str, str]], list[Path]]:
    """The lowerings that can be used, with the files that they read, and the folders of those that cannot: a file
    that was read is another now."""
    good: dict[str, dict[str, str]] = {}
    stale: dict[Path, None] = {}
    for row in planned:
        folder = cell_rows.task_folder(store, cell_rows.LOWERED, row.lowering)
        if row.lowering in good or not folder.is_dir():
            continue
        try:
            reads = json.loads(filesystem.file_text(folder / FACTS_NAME, _MOST_FACTS_BYTES))["reads"]
            fits = keys.unchanged(reads)
        except (InputError, OSError, ValueError, KeyError, AttributeError, TypeError):
            fits = False
        if fits:
            good[row.lowering] = reads
        else:
            stale[folder] = None
            stale[cell_rows.task_folder(store, cell_rows.COMPILED, row.compilation)] = None
    return good, list(stale)


def _pricing(configuration: Configuration, options: SweepOptions) -> Callable[[Cell], Sequence[object]]:
    return lambda cell: (configuration.system(cell.system).sha256, options.cpu_clock_mhz)


def tasks_of_cell(plan: Plan, planned: Planned, token: str, options: SweepOptions) -> dict[str, Task]:
    cell, configuration = planned.cell, plan.configuration
    system = configuration.system(cell.system)
    is_default = system is configuration.systems[DEFAULT]
    vela_config = options.vela_config if is_default else None
    common: Task = {
        "store": str(plan.store.absolute()),
        "cwd": str(configuration.folder),
        "token": token,
        "tools": child_process.compiler_identity(),
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
    lowered_for = shared_lowering.representative_target(cell.target)
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
