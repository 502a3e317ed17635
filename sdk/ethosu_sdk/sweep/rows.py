"""A cell's record, ``sweep-cell/1``, and its row in the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ethosu_sdk import provenance, records, schema
from ethosu_sdk.aot.evaluation.facts import FLOAT
from ethosu_sdk.files import hashing, json_text
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, host_facts
from ethosu_sdk.steps.evaluate.thresholds import EXECUTED, TRUTHS
from ethosu_sdk.sweep import places

CELL_NAME = kinds.SWEEP_CELL.file
PASS, FAIL, REFUSED, FAILED, NOT_RUN = "pass", "fail", "refused", "failed", "not run"
TIMEOUT, OUT_OF_MEMORY, KILLED = "timeout", "out of memory", "killed"
STATUSES = (PASS, FAIL, REFUSED, FAILED, TIMEOUT, OUT_OF_MEMORY, KILLED, NOT_RUN)
UNFINISHED = (FAILED, TIMEOUT, OUT_OF_MEMORY, KILLED)
_BY_EXIT_CODE = {7: FAIL, 2: REFUSED, 3: REFUSED}
_LONGEST_MESSAGE = 8000  # of a tool's last lines
_HZ_PER_MHZ = 1e6

TEXT, WHOLE, NUMBER = "text", "whole number", "number"
# Column → its type. The order is that of the table.
COLUMNS = {
    "cell": TEXT,
    "model": TEXT,
    "model_sha256": TEXT,
    "target": TEXT,
    "npu": TEXT,
    "macs": WHOLE,
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
VOLATILE = ("seconds",)


def write(out: Path, task: Mapping[str, Any], outcome: Mapping[str, Any]) -> Record:
    """Write the record of a cell into its folder, with a manifest over all that is there; its row."""
    error = dict(outcome.get("error", {}))
    status = PASS if not error else error.pop("status", _BY_EXIT_CODE.get(error["exit_code"], FAILED))
    if error:
        error["message"] = error["message"][:_LONGEST_MESSAGE]
    compiled, run = _record(out, "*.compile.json"), _record(out, "run.json")
    found = figures(compiled, run)
    exact = [name for name, value in found.items() if value == math.inf]
    limits = {key: task[key] for key in ("time_s", "memory_bytes") if task[key] is not None}
    record = {
        "schema": kinds.SWEEP_CELL.schema,
        "status": status,
        "created": records.timestamp(),
        "tool": provenance.tool(),
        "key": task["key"],
        "model_sha256": task["model_sha256"],
        "cell": {name: value for name, value in task["dimensions"].items() if value is not None},
        **({"error": error} if error else {}),
        "figures": {name: value for name, value in found.items() if value not in (None, math.inf)},
        **({"no_noise": exact} if exact else {}),
        "reads": dict(outcome.get("reads", {})),
        "limits": limits,
        "wall_time_s": outcome.get("seconds", 0.0),
        "host": host_facts.host(),
    }
    schema.check(record, "the cell")
    json_text.write_json(out / CELL_NAME, record)
    list_files(out)
    return row(record)


def list_files(out: Path) -> None:
    """Add to the manifest of `out` what is there and no command lists."""
    with bundle.published(out, "sweep") as add:
        manifest = bundle.read(out)
        listed = {part.path for part in manifest.files} if manifest is not None else set()
        paths = (path for path in sorted(out.rglob("*")) if path.is_file())
        names = (str(path.relative_to(out)) for path in paths)
        add(*(name for name in names if name not in listed and _counts(name)))


def _counts(name: str) -> bool:
    return name != bundle.MANIFEST_NAME and not any(part.startswith(".") for part in name.split("/"))


def _record(out: Path, pattern: str) -> Record | None:
    paths = sorted(out.glob(pattern))
    return json_text.read_json(paths[0]) if paths else None


def row(record: Record) -> Record:
    """The row of a cell's record: every column, None where there is nothing to say."""
    cell, error, key = record["cell"], record.get("error", {}), places.short(record["key"])
    npu, _, macs = cell["target"].rpartition("-")
    known = {
        **cell,
        **record["figures"],
        **dict.fromkeys(record.get("no_noise", ()), math.inf),
        "cell": key,
        "model_sha256": record["model_sha256"],
        "npu": npu,
        "macs": int(macs),
        "status": record["status"],
        "error": error.get("class"),
        "exit_code": error.get("exit_code", 0 if record["status"] == PASS else None),
        "message": error.get("message"),
        "hint": error.get("hint"),
        "seconds": record["wall_time_s"],
        "folder": f"{places.CELLS}/{key}",
    }
    return {name: known.get(name) for name in COLUMNS}


def not_run(key: str, model_sha256: str, dimensions: Mapping[str, Any]) -> Record:
    """The row of a cell that was not come to."""
    record = {
        "key": key,
        "model_sha256": model_sha256,
        "status": NOT_RUN,
        "cell": dimensions,
        "figures": {},
        "wall_time_s": None,
    }
    return {**row(record), "folder": None}


def figures(compiled: Record | None, run: Record | None) -> Record:
    """The figures of a cell's records; an SQNR is infinite where there is no noise."""
    if compiled is None:
        return {}
    target = compiled["target"]
    system = system_config.known(target["npu"], target["system_config"], target["memory_mode"])
    clock_hz = None if system is None else system.clock_hz
    cycles, source = _cycles(compiled, run)
    return {
        "program_bytes": compiled["model"]["bytes"],
        "program_sha256": compiled["model"]["sha256"],
        "npu_cycles": cycles,
        "npu_cycles_source": source,
        "clock_mhz": None if clock_hz is None else clock_hz / _HZ_PER_MHZ,
        "time_ms": None if clock_hz is None or cycles is None else cycles * 1e3 / clock_hz,
        "sram_bytes": _most(compiled, "sram_used"),
        "dram_bytes": _most(compiled, "dram_used"),
        "flash_bytes": sum(part["payload_bytes"] for part in compiled["delegates"]),
        "npu_macs": _sum(compiled, "macs"),
        "operators_npu": sum(part["delegated"] for part in compiled["delegation"]),
        "operators_cpu": sum(part["not_delegated"] for part in compiled["delegation"]),
        "cpu_calls": sum(part["calls"] for part in compiled["cpu_operators"]),
        "check": compiled["check"]["status"],
        "check_sqnr_db": _worst_db(compiled["check"].get("outputs", ())),
        **_accuracy(compiled.get("accuracy", {"pairs": ()})["pairs"]),
        "outputs_sha256": None if run is None else _outputs(run),
    }


def _accuracy(pairs: Iterable[Record]) -> Record:
    """What the executed program is worth on samples: the worst output's distance from floating point, and share of
    right answers."""
    executed = [row for row in pairs if row["candidate"] == EXECUTED]
    shares = [row["top1"]["share"] for row in executed if row["reference"] in TRUTHS and "top1" in row]
    distance = _worst_db(row for row in executed if row["reference"] == FLOAT)
    return {"sqnr_db": distance, "top1": min(shares, default=None)}


def _worst_db(rows: Iterable[Record]) -> float | None:
    """The least SQNR of compared outputs, infinite where all of them are equal; None where nothing says."""
    known = [
        row.get("sqnr_db", math.inf) for row in rows if "sqnr_db" in row or row["equal"] == row["elements"]
    ]
    return min(known, default=None)


def _outputs(run: Record) -> str:
    """One digest of all outputs."""
    return hashing.sha256_bytes(" ".join(part["sha256"] for part in run["outputs"]).encode())


def _cycles(compiled: Record, run: Record | None) -> tuple[int | None, str | None]:
    """The NPU's cycles of an inference: the run's, or Vela's estimate where nothing ran."""
    if run is not None and "npu" in run:
        known = run["npu"].get("cycles")
        return (None, None) if known is None else (known["value"], known["source"])
    total = _sum(compiled, "total_cycles")
    return (None, None) if total is None or run is not None else (total, "estimated")


def _estimates(compiled: Record, name: str) -> Iterable[float]:
    return (
        part["value"] for row in compiled["delegates"] for part in row["estimates"] if part["name"] == name
    )


def _sum(compiled: Record, name: str) -> int | None:
    found = list(_estimates(compiled, name))
    return int(sum(found)) if found else None


def _most(compiled: Record, name: str) -> int | None:
    found = list(_estimates(compiled, name))
    return int(max(found)) if found else None
