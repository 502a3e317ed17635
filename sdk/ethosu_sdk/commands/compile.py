"""`ethosu-sdk compile`: a PyTorch model → `.pte`, example inputs and outputs, and compile.json."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from ethosu_sdk import __version__, aot, provenance, records, resources, schema
from ethosu_sdk.aot.model_spec import ModelSpec, parse_model_spec
from ethosu_sdk.commands import host_facts, locations
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.errors import SdkError
from ethosu_sdk.records import Record
from ethosu_sdk.targets import Target, parse_target

_SCHEMA = "compile-result/1"
_PACKAGES = ("torch", "executorch", "ethos-u-vela")

# Columns of Vela 5.1.0's summary CSV that the record keeps: its name → (our name, unit, factor to that unit).
_ESTIMATES: Mapping[str, tuple[str, str, float]] = {
    "cycles_total": ("total_cycles", "cycles", 1.0),
    "cycles_npu": ("npu_cycles", "cycles", 1.0),
    "cycles_sram_access": ("sram_access_cycles", "cycles", 1.0),
    "cycles_dram_access": ("dram_access_cycles", "cycles", 1.0),
    "cycles_on_chip_flash_access": ("on_chip_flash_access_cycles", "cycles", 1.0),
    "cycles_off_chip_flash_access": ("off_chip_flash_access_cycles", "cycles", 1.0),
    "nn_macs": ("macs", "operations", 1.0),
    "inference_time": ("inference_time", "s", 1.0),
    "sram_memory_used": ("sram_used", "bytes", 1024.0),
    "dram_memory_used": ("dram_used", "bytes", 1024.0),
    "on_chip_flash_memory_used": ("on_chip_flash_used", "bytes", 1024.0),
    "off_chip_flash_memory_used": ("off_chip_flash_used", "bytes", 1024.0),
}


@dataclass(frozen=True)
class CompileOptions:
    """The options of `compile` as given on the command line, not yet checked."""

    target: str
    system_config: str | None = None
    memory_mode: str | None = None
    quantize: str | None = None
    io: str = "float"
    delegate: bool = True
    calibration: tuple[Path, ...] = ()
    inputs: Path | None = None

    def checked_target(self) -> Target:
        """The target with its configurations; UsageError for a pairing that does not exist."""
        return parse_target(self.target, self.system_config, self.memory_mode)


def compile_model(
    model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter, *, reuse: bool = False
) -> Path:
    """Compile `model` and write its record; the path of the `.pte`.

    With `reuse`, a result that is there and up to date is left alone; a Python file is always compiled anew,
    because what it imports is not part of the key.
    """
    target = options.checked_target()
    spec = parse_model_spec(model)
    folder = locations.for_model(spec.name, target, out_dir)
    with records.locked(folder):
        key = _compile_key(model, spec, options, target)
        pte = folder / f"{spec.name}.pte"
        if reuse and spec.kind != "python" and _is_current(pte, key):
            reporter.note(f"{escape(pte.name)} is up to date")
            return pte
        record = _compile(model, options, target, folder, key, reporter)
    reporter.show(_summary(record, folder))
    reporter.emit(record)
    return pte


def _compile(
    model: str, options: CompileOptions, target: Target, folder: Path, key: str, reporter: Reporter
) -> Record:
    start = time.monotonic()
    request = aot.CompileRequest(
        model=model,
        target=target,
        out_dir=folder,
        quantize=options.quantize,
        io=options.io,
        delegate=options.delegate,
        inputs=options.inputs,
        calibration=options.calibration,
    )
    with reporter.stage(f"compiling {escape(model)} for {target.name}") as step:
        output = aot.compile_model(request, step)
    for warning in output.warnings:
        reporter.warn(escape(warning))
    record = _record(model, output, key, time.monotonic() - start, options.delegate)
    schema.check(record, "the compile result")
    records.write_json(locations.compile_record(output.pte), record)
    return record


def _compile_key(model: str, spec: ModelSpec, options: CompileOptions, target: Target) -> str:
    """SHA-256 over all that shapes a compilation and can be seen beforehand."""
    files = [path for path in (spec.path, options.inputs, *options.calibration) if path is not None]
    basis = {
        "sdk": __version__,
        "packages": {name: provenance.package_version(name) for name in _PACKAGES},
        "aot": [records.sha256_file(path) for path in sorted((resources.PACKAGE_ROOT / "aot").rglob("*.py"))],
        "model": model if spec.path is None else spec.entry,
        "files": [records.sha256_file(path) for path in files],
        "target": [target.name, target.system_config, target.memory_mode],
        "options": [options.quantize, options.io, options.delegate],
    }
    return records.sha256_bytes(json.dumps(basis, sort_keys=True).encode())


def _is_current(pte: Path, key: str) -> bool:
    """Whether `pte` and its record are there, whole, and made from what `key` stands for."""
    try:
        record = records.read_json(locations.compile_record(pte))
        schema.check(record, "the compile result")
        return (
            record["compile_key"] == key
            and record["model"]["sha256"] == records.sha256_file(pte)
            and locations.example_io(pte).is_file()
        )
    except SdkError:
        return False


def _record(model: str, output: aot.CompileOutput, key: str, wall_time_s: float, delegated: bool) -> Record:
    versions = [provenance.tool_entry(name, version) for name, version in sorted(output.versions.items())]
    source: Record = {
        "role": "model source",
        "file": Path(output.model_source).name,
        "sha256": output.model_sha256,
    }
    return {
        **provenance.header(_SCHEMA, "pass", [source], versions),
        "compile_key": key,
        "source": model,
        "model": {
            "file": output.pte.name,
            "sha256": output.pte_sha256,
            "bytes": output.pte_bytes,
            "entry": "forward",
        },
        "target": target_part(output.target),
        "options": {"quantize": output.quantize, "io": output.io_type, "delegate": delegated},
        "calibration": {"source": output.calibration_source, "samples": output.calibration_samples},
        "inputs": _tensors(output.inputs),
        "outputs": _tensors(output.outputs),
        "cpu_operators": [{"name": row.name, "calls": row.calls} for row in output.cpu_operators],
        "delegates": [_delegate(row) for row in output.delegates],
        "files": {"pte": output.pte.name, "io": output.io.name, "log": output.log.name},
        "warnings": list(output.warnings),
        "unavailable": [],
        "wall_time_s": round(wall_time_s, 3),
        "host": host_facts.host(),
    }


def target_part(target: Target) -> Record:
    """The `target` object of a record."""
    return {
        "npu": target.npu,
        "macs": target.macs,
        "system_config": target.system_config,
        "memory_mode": target.memory_mode,
    }


def _tensors(rows: tuple[aot.TensorFacts, ...]) -> list[Record]:
    return [{"index": index, "shape": list(row.shape), "dtype": row.dtype} for index, row in enumerate(rows)]


def _delegate(row: aot.DelegateFacts) -> Record:
    return {
        "index": row.index,
        "payload_sha256": row.payload_sha256,
        "payload_bytes": row.payload_bytes,
        "scratch_bytes": row.scratch_bytes,
        "fast_scratch_bytes": row.scratch_fast_bytes,
        "files": {
            "tosa": row.tosa_file,
            "summary": row.summary_file,
            "per_layer": row.per_layer_file,
            "debug": row.debug_file,
        },
        "estimates": [
            {"name": name, "value": row.estimates[column] * factor, "unit": unit, "source": "estimated"}
            for column, (name, unit, factor) in _ESTIMATES.items()
            if column in row.estimates
        ],
    }


def _summary(record: Record, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("program", f"{escape(record['model']['file'])}, {record['model']['bytes']:,} bytes")
    target = record["target"]
    table.add_row(
        "target", f"{target['npu']}-{target['macs']}, {target['system_config']}, {target['memory_mode']}"
    )
    table.add_row("delegates", str(len(record["delegates"])))
    cpu = ", ".join(f"{row['name']} ({row['calls']})" for row in record["cpu_operators"])
    table.add_row("on the CPU", escape(cpu) or "nothing")
    cycles = sum(
        row["value"]
        for part in record["delegates"]
        for row in part["estimates"]
        if row["name"] == "total_cycles"
    )
    if record["delegates"]:
        table.add_row("cycles", f"{cycles:,.0f} (estimated by Vela)")
    table.add_row("files", escape(str(folder)))
    return table
