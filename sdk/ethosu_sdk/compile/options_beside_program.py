"""The options of `compile` beside a program that is compiled already: none is dropped unread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.compile.program_options import CompileOptions, option_fields, option_name
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, provenance, result_files
from ethosu_sdk.records.compile import Compilation

PRICING = ("system", "vela_config")  # those that say what a program's cycles are for


def refuse_options(
    path: Path, options: CompileOptions, data: Sequence[Path] = (), read: tuple[str, ...] = PRICING
) -> None:
    """UsageError for an option that the command does not `read` beside the program at `path` with the `data` files,
    and that says anything else than the program and its compile record do."""
    given = {
        name: row
        for name, row in option_fields(CompileOptions).items()
        if name not in read and getattr(options, name) != row.default
    }
    if not given:
        return
    program = pte.read(path, data)
    record = result_files.compile_record_path(path)
    compiled = bundle.compilation_of(record, program.sha256) if record.is_file() else None
    known = _known(program, compiled)
    for name, row in given.items():
        value = getattr(options, name)
        if name in known and known[name] == value:
            continue
        text = "" if isinstance(value, bool) else f" {' '.join(value) if isinstance(value, tuple) else value}"
        raise UsageError(
            f"{path.name} is compiled already, {_words(program, compiled)}: {option_name(row)}{text} has no effect",
            f"leave {option_name(row)} out, or give the model instead of the .pte",
        )


def _known(program: pte.Pte, compiled: Compilation | None) -> dict[str, Any]:
    """The options that say what the program is."""
    target, found = program.target(), dict[str, Any]()
    if target is not None:
        found |= {
            "target": target.name,
            "system_config": target.system_config,
            "memory_mode": target.memory_mode,
        }
    if compiled is not None:
        options = compiled.options
        found |= {
            "target": compiled.target_name,
            "quantize": options.quantize,
            "quantize_per": options.quantize_per,
            "io": options.io,
            "delegate": options.delegate,
            "fallback": options.fallback,
            "as_written": options.as_written,
            "vela_flags": options.vela_flags,
        }
    return found


def _words(program: pte.Pte, compiled: Compilation | None) -> str:
    target = provenance.recorded_target(program.target())
    if target is not None:
        words = f"for {target.words}"
    else:
        words = f"for {compiled.target_name}" if compiled is not None else "without an NPU"
    quantize = None if compiled is None else compiled.options.quantize
    return words if quantize is None else f"{words}, quantised: {quantize}"
