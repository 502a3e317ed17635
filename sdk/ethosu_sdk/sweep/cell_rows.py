"""Cells in the folder of a sweep: where each lies, its record, ``sweep-cell/1``, and its row in the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import cores
from ethosu_sdk.compile.compile_facts import FLOAT
from ethosu_sdk.compile.thresholds import EXECUTED, TRUTHS
from ethosu_sdk.records import bundle, kinds, provenance, validation
from ethosu_sdk.records.common import Content, RecordKind
from ethosu_sdk.records.compile import CheckedOutput, Compilation, Pair
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sweep import SweepCell
from ethosu_sdk.records.time_line import headline

LOWERED, COMPILED, CELLS = "lowered", "compiled", "cells"
READS_NAME = ".reads.json"  # beside a compilation: the files of its lowering, which no manifest lists
Row = dict[str, Any]  # of the table of cells, by its columns
PASS, FAIL, REFUSED, FAILED, NOT_RUN = "pass", "fail", "refused", "failed", "not run"
TIMEOUT, OUT_OF_MEMORY, KILLED = "timeout", "out of memory", "killed"
STATUSES = (PASS, FAIL, REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY, KILLED, NOT_RUN)
UNFINISHED = (FAILED, TIMEOUT, OUT_OF_MEMORY, KILLED)
_BY_EXIT_CODE = {7: FAIL, 2: REFUSED, 3: REFUSED}

TEXT, WHOLE, NUMBER = "text", "whole number", "number"
# Column → its type. The order is that of the table.
COLUMNS = {
    "cell": TEXT,
    "model": TEXT,
    "model_sha256": TEXT,
    "target": TEXT,
    "npu": TEXT,
    "macs": WHOLE,
    "system": TEXT,
    "system_config": TEXT,
    "memory_mode": TEXT,
    "quantize": TEXT,
    "vela": TEXT,
    "simulator": TEXT,
    "board": TEXT,
    "inputs": TEXT,
    "status": TEXT,
    "error": TEXT,
    "exit_code": WHOLE,
    "message": TEXT,
    "hint": TEXT,
    "seconds": NUMBER,
    "folder": TEXT,
    "program_bytes": WHOLE,
    "program_sha256": TEXT,
    "npu_cycles": WHOLE,
    "npu_cycles_source": TEXT,
    "clock_mhz": NUMBER,
    "time_ms": NUMBER,
    "inference_ms": NUMBER,
    "sram_bytes": WHOLE,
    "dram_bytes": WHOLE,
    "flash_bytes": WHOLE,
    "npu_macs": WHOLE,
    "operators_npu": WHOLE,
    "operators_cpu": WHOLE,
    "cpu_calls": WHOLE,
    "check": TEXT,
    "check_sqnr_db": NUMBER,
    "sqnr_db": NUMBER,
    "top1": NUMBER,
    "outputs_sha256": TEXT,
}


def short_key(key: str) -> str:
    return key[:12]


def task_folder(store: Path, part: str, key: str) -> Path:
    """The folder of a task in one of LOWERED, COMPILED and CELLS: named by the beginning of its key."""
    return store / part / short_key(key)


def write_cell(out: Path, task: Mapping[str, Any], outcome: Mapping[str, Any]) -> Row:
    """Write the record of a cell into its folder, with a manifest over all that is there; its row."""
    error = dict(outcome.get("error", {}))
    status = PASS if not error else error.pop("status", _BY_EXIT_CODE.get(error["exit_code"], FAILED))
    if error:
        error["message"] = error["message"][:8000]  # a tool's last lines
    compiled, run = _read_kind(kinds.COMPILE, out), _read_kind(kinds.RUN, out)
    found = cell_figures(compiled, run)
    exact = [name for name, value in found.items() if value == math.inf]
    limits = {key: task[key] for key in ("time_s", "memory_bytes") if task[key] is not None}
    record = {
        **provenance.opening(kinds.SWEEP_CELL.schema, status),
        "key": task["key"],
        "model_sha256": task["model_sha256"],
        "cell": {name: value for name, value in task["dimensions"].items() if value is not None},
        **({"error": error} if error else {}),
        "figures": {name: value for name, value in found.items() if value not in (None, math.inf)},
        **({"no_noise": exact} if exact else {}),
        "reads": dict(outcome.get("reads", {})),
        "limits": limits,
        "wall_time_s": outcome.get("seconds", 0.0),
        "host": provenance.host_part(),
    }
    validation.write_record(out / kinds.SWEEP_CELL.file, record, "the cell")
    complete_manifest(out)
    return row_of_cell(kinds.SWEEP_CELL.convert(record))


def complete_manifest(out: Path) -> None:
    """Add to the manifest of `out` what is there and no command lists."""
    with bundle.writing_folder(out, "sweep") as add:
        manifest = bundle.read_manifest(out)
        listed = {bundle.MANIFEST_NAME, *(part.path for part in (manifest.files if manifest else ()))}
        paths = (path.relative_to(out) for path in sorted(out.rglob("*")) if path.is_file())
        shown = (str(path) for path in paths if not any(part.startswith(".") for part in path.parts))
        add(*(name for name in shown if name not in listed))


def _read_kind(kind: RecordKind[Content], out: Path) -> Content | None:
    paths = sorted(out.glob(kind.file))
    return kind.convert(json_text.read_json(paths[0])) if paths else None


def row_of_cell(record: SweepCell) -> Row:
    """The row of a cell's record, with every column; unknown values are None."""
    error = {} if record.error is None else record.error.to_json()
    known: Row = {
        **record.cell.to_json(),
        **record.figures.to_json(),
        **dict.fromkeys(record.no_noise or (), math.inf),
        **_head(record.key, record.model_sha256, record.cell.target),
        "status": record.status,
        **{"exit_code": 0, **error, "error": error.get("class")},
        "seconds": record.wall_time_s,
        "folder": f"{CELLS}/{short_key(record.key)}",
    }
    return {name: known.get(name) for name in COLUMNS}


def _head(key: str, model_sha256: str, target: str) -> Row:
    head: Row = {"cell": short_key(key), "model_sha256": model_sha256}
    if target in cores():
        return head
    npu, _, macs = target.rpartition("-")
    return {**head, "npu": npu, "macs": int(macs)}


def row_not_run(key: str, model_sha256: str, dimensions: Mapping[str, Any]) -> Row:
    known = {**dimensions, **_head(key, model_sha256, dimensions["target"]), "status": NOT_RUN}
    return {name: known.get(name) for name in COLUMNS}


def cell_figures(compiled: Compilation | None, run: Run | None) -> Record:
    """The figures of a cell's records; an SQNR is infinite where there is no noise."""
    if compiled is None:
        return {}
    delegation = compiled.delegation or ()
    clock_hz = None if compiled.system is None else compiled.system.clock_hz
    if run is not None and run.priced is not None and not run.priced.compiled_for:
        clock_hz = None  # cycles for another system are no time of this one
    cycles, source = _cycles(compiled, run)
    whole = None if run is None else headline(run)
    digests = "" if run is None else " ".join(part.sha256 for part in run.outputs)
    pairs = () if compiled.accuracy is None else compiled.accuracy.pairs
    executed = [row for row in pairs if row.candidate == EXECUTED]
    shares = [row.top1.share for row in executed if row.reference in TRUTHS and row.top1 is not None]
    return {
        "program_bytes": compiled.model.bytes,
        "program_sha256": compiled.model.sha256,
        "npu_cycles": cycles,
        "npu_cycles_source": source,
        "clock_mhz": None if clock_hz is None else clock_hz / 1e6,
        "time_ms": None if clock_hz is None or cycles is None else cycles * 1e3 / clock_hz,
        "inference_ms": None if whole is None else whole.total.duration_s * 1e3,
        "sram_bytes": _total(compiled, "sram_used", max),
        "dram_bytes": _total(compiled, "dram_used", max),
        "flash_bytes": sum(part.payload_bytes for part in compiled.delegates),
        "npu_macs": _total(compiled, "macs", sum),
        "operators_npu": sum(part.delegated for part in delegation),
        "operators_cpu": sum(part.not_delegated for part in delegation),
        "cpu_calls": sum(part.calls for part in compiled.cpu_operators),
        "check": compiled.check.status,
        "check_sqnr_db": _worst_db(compiled.check.outputs or ()),
        # What the executed program is worth on samples: the worst output's distance, and share of right answers.
        "sqnr_db": _worst_db(row for row in executed if row.reference == FLOAT),
        "top1": min(shares, default=None),
        "outputs_sha256": None if run is None else filesystem.sha256_bytes(digests.encode()),  # one of all
    }


def _worst_db(rows: Iterable[CheckedOutput | Pair]) -> float | None:
    """The least SQNR of compared outputs, infinite where all of them are equal; None where nothing says."""
    known = [
        math.inf if row.sqnr_db is None else row.sqnr_db
        for row in rows
        if row.sqnr_db is not None or row.equal == row.elements
    ]
    return min(known, default=None)


def _cycles(compiled: Compilation, run: Run | None) -> tuple[float | None, str | None]:
    """The NPU's cycles of an inference: the run's, or Vela's estimate where nothing ran."""
    if run is not None and run.npu is not None:
        known = run.npu.cycles
        return (None, None) if known is None else (known.value, known.source)
    total = _total(compiled, "total_cycles", sum)
    return (None, None) if total is None or run is not None else (total, "estimated")


def _total(compiled: Compilation, name: str, total: Callable[[list[float]], float]) -> int | None:
    """The `total` of an estimate of Vela's over the delegates; None where none has it."""
    found = [part.value for row in compiled.delegates for part in row.estimates if part.name == name]
    return int(total(found)) if found else None
