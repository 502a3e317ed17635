"""The record of `ethosu-sdk compile`: ``compile-result/1``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ethosu_sdk.base import board_profiles, filesystem
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest, MethodFacts, TensorFacts
from ethosu_sdk.records import kinds, provenance, result_files


def compile_record(request: CompileRequest, output: CompileOutput, key: str, wall_time_s: float) -> Record:
    """The record of a compilation that took `wall_time_s`; `key` is its compile key."""
    options = request.options
    versions = [provenance.tool_entry(name, version) for name, version in sorted(output.versions.items())]
    profile = None if options.system is None else board_profiles.find_profile(options.system)
    others = [{"name": row.name, "io": row.io.name, **_of_method(row)} for row in output.other_methods]
    return {
        **provenance.header(kinds.COMPILE.schema, "pass", _inputs(request, output), versions),
        "compile_key": key,
        "source": request.model,
        "model": {
            "file": output.pte.name,
            "sha256": output.pte_sha256,
            "bytes": output.pte_bytes,
            "entry": output.entry,
        },
        **_target(request, output),
        **({} if profile is None else {"board_profile": {"name": profile.name, "sha256": profile.sha256}}),
        "options": {
            **_quantization(request, output),
            "io": output.io_type,
            "delegate": options.delegate,
            "vela_flags": list(options.vela_flags),
            **({} if options.fallback is None else {"fallback": options.fallback}),
            **({"as_written": True} if options.as_written else {}),
        },
        "prequantized": output.prequantized,
        **_of_method(output.all_methods[0]),
        **({"other_methods": others} if others else {}),
        **({"sequence": output.fed.to_json()} if output.fed is not None else {}),
        "files": {
            "pte": output.pte.name,
            "io": output.io.name,
            "log": output.log.name,
            **({} if output.etrecord is None else {"etrecord": output.etrecord}),
        },
        "warnings": list(output.warnings),
        "unavailable": [],
        "wall_time_s": round(wall_time_s, 3),
        "host": provenance.host_part(),
    }


def _of_method(row: MethodFacts) -> Record:
    return {
        "calibration": {"source": row.calibration_source, "samples": row.calibration_samples},
        "inputs": _tensors(row.inputs),
        "outputs": _tensors(row.outputs),
        **({"state": [part.to_json() for part in row.state]} if row.state else {}),
        **({"rewrites": [part.to_json() for part in row.rewrites]} if row.rewrites else {}),
        **({"refinements": [part.to_json() for part in row.refinements]} if row.refinements else {}),
        "layout_changes": row.layout.to_json(),
        "cpu_operators": [part.to_json() for part in row.cpu_operators],
        "delegates": [part.to_json() for part in row.delegates],
        "delegation": [part.to_json() for part in row.delegation],
    }


def _target(request: CompileRequest, output: CompileOutput) -> Record:
    part = provenance.recorded_target(output.target)
    if output.target is None or part is None:
        return {"core": output.core}
    return {
        "target": part.to_json(),
        "system": pricing_system.system_part(
            pricing_system.system_for_options(output.target, request.options)
        ),
    }


def _quantization(request: CompileRequest, output: CompileOutput) -> Record:
    """How the model was quantised here; what had no part in it is left out."""
    if output.own_quantizer == "instance":
        return {"quantizer": "instance of the model file"}
    own = {} if output.own_quantizer is None else {"quantizer": "function of the model file"}
    per = {} if output.quantize == "none" else {"quantize_per": request.options.quantize_per}
    return {"quantize": output.quantize, **per, **own}


def _inputs(request: CompileRequest, output: CompileOutput) -> list[Record]:
    options = request.options
    files: list[tuple[str, Path]] = [("calibration", path) for path in options.calibration]
    files += [("example inputs", options.inputs)] if options.inputs is not None else []
    files += [("vela configuration", options.vela_config)] if options.vela_config is not None else []
    if options.system is not None and board_profiles.is_profile_file(options.system):
        files.append((result_files.BOARD_PROFILE, Path(options.system)))
    return [
        {"role": "model source", "file": Path(output.model_source).name, "sha256": output.model_sha256},
        *({"role": role, "file": path.name, "sha256": filesystem.sha256_file(path)} for role, path in files),
    ]


def _tensors(rows: Iterable[TensorFacts]) -> list[Record]:
    return [
        {
            "index": index,
            "shape": list(row.shape),
            "dtype": row.dtype,
            **({"name": row.name} if row.name else {}),
        }
        for index, row in enumerate(rows)
    ]
