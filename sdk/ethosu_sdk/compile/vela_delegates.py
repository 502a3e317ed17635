"""The delegates of a program: compiled while ExecuTorch lowers it, or kept for later, and their files."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.compile import finished_program, tool_hooks, vela_capture, vela_checks, vela_database
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.shared_lowering import graph_file, origins_file
from ethosu_sdk.compile.tool_hooks import patched
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.records.common import Estimate, TosaOperation, VelaOperation
from ethosu_sdk.records.compile import Delegate, DelegateFiles, Operation

LOG_NAME = "compile.log"

_SUFFIXES = {"tosa": ".tosa", "summary": ".summary.csv", "per_layer": ".per-layer.csv", "debug": ".debug.xml"}
_ARTEFACT = re.compile(r"(\w+\.)?delegate\d+(\.tosa|\.summary\.csv|\.per-layer\.csv|\.debug\.xml)")


@contextlib.contextmanager
def published_folder(folder: Path, *optional: str) -> Iterator[Path]:
    """An empty folder whose files replace those of `folder` when the block ends well, and are removed otherwise.
    Artefacts of delegates that an earlier compilation left are removed, and of the files `optional` those that are
    not written this time. BuildError when the disk refuses."""
    try:
        with filesystem.temporary_directory(".compile-", folder) as temporary:
            yield temporary
            written = {path.name: path for path in temporary.iterdir()}
            for old in folder.iterdir():
                stale = old.name in optional or _ARTEFACT.fullmatch(old.name)
                if stale and old.name not in written:
                    old.unlink()
            for final, path in sorted(written.items()):
                path.replace(folder / final)
    except OSError as error:
        raise BuildError(f"cannot write to {folder}: {error.strerror}", "choose another with -o") from error


def write_delegates(
    folder: Path,
    manager: Any,
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
    method: str,
    prefix: str,
) -> tuple[Delegate, ...]:
    """Write the artefacts of each delegate of a method, in files that begin with `prefix`, and return the facts in
    the program's order. BuildError when a delegate has no Vela run, or not all outputs of its graph, or weights for
    other channels than its layers have; InputError when it loses a look-up table."""
    arguments = finished_program.delegate_arguments(manager, method)
    payloads = list(finished_program.delegate_payloads(manager, method))
    facts = []
    for index, turn in enumerate(vela_capture.run_turns(payloads, captures)):
        made, called = captures[turn], arguments.get(index)
        facts.append(write_checked_delegate(folder, index, payloads[index], made, finder, called, prefix))
    return tuple(facts)


def write_checked_delegate(
    folder: Path,
    index: int,
    payload: bytes,
    made: VelaCapture,
    finder: SourceFinder,
    arguments: int | None,
    prefix: str = "",
) -> Delegate:
    """Write a delegate's artefacts, and check its payload against its graph and the number of its `arguments`."""
    vela_checks.check_outputs(index, payload, made, finder)
    vela_checks.check_call(index, payload, made, finder, arguments)
    facts = write_delegate(folder, index, made, finder, prefix)
    vela_checks.check_weights(facts, made.debug_xml)
    vela_checks.check_tables(facts, payload)
    return facts


def write_delegate(
    folder: Path, index: int, made: VelaCapture, finder: SourceFinder, prefix: str = ""
) -> Delegate:
    """Write the artefacts of one delegate; it as the record has it."""
    found = _delegate(index, made, _operations(made, finder), prefix)
    files = found.files
    assert files.tosa is not None
    for name, content in (
        (files.tosa, made.tosa),
        (files.summary, made.summary_csv),
        (files.per_layer, made.per_layer_csv),
        (files.debug, made.debug_xml),
    ):
        filesystem.write_bytes(folder / name, content)
    return found


def _delegate(index: int, made: VelaCapture, operations: tuple[Operation, ...], prefix: str = "") -> Delegate:
    names = {part: f"{prefix}delegate{index}{suffix}" for part, suffix in _SUFFIXES.items()}
    return Delegate(
        index=index,
        payload_sha256=made.payload_sha256,
        payload_bytes=made.payload_bytes,
        scratch_bytes=made.scratch_bytes,
        fast_scratch_bytes=made.scratch_fast_bytes,
        files=DelegateFiles(**names),
        estimates=made.estimates if made.summary_csv else (),
        operations=operations,
    )


def _operations(made: VelaCapture, finder: SourceFinder) -> tuple[Operation, ...]:
    """The command stream's operations, each joined with its TOSA operator and its line in the model."""
    graph = tosa_graph.read_operators(made.tosa)
    found = []
    for row in vela_database.scheduled_operations(made.debug_xml):
        known = row.tosa_index is not None and row.tosa_index < len(graph)
        origin = graph[row.tosa_index] if known and row.tosa_index is not None else None
        tensor = origin.outputs[0] if origin is not None and origin.outputs else None
        estimates = (
            ("cycles", row.cycles, "cycles"),
            ("macs", row.macs, "operations"),
            ("staging", row.staging_bytes, "bytes"),
        )
        found.append(
            Operation(
                offsets=row.offsets,
                vela=VelaOperation(operator=row.operator, name=row.name or None),
                tosa=None
                if origin is None
                else TosaOperation(index=origin.index, operator=origin.name, tensor=tensor),
                source=finder.find(made.nodes.get(tensor, {}) if tensor is not None else {}),
                estimates=tuple(
                    Estimate(name=name, value=value, unit=unit, source="estimated")
                    for name, value, unit in estimates
                    if value is not None
                ),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class DelegateCompiler:
    """While the block of `captured` runs, each delegate that is compiled adds to its list; `write` lays the
    artefacts of a method of a finished program into a folder, in files whose names begin with the last argument."""

    captured: Callable[[VelaConfig | None], AbstractContextManager[list[VelaCapture]]]
    write: Callable[[Path, Any, Sequence[VelaCapture], SourceFinder, str, str], tuple[Delegate, ...]]


VELA = DelegateCompiler(vela_capture.runs_captured, write_delegates)


@contextlib.contextmanager
def _captured(_config: VelaConfig | None = None) -> Iterator[list[VelaCapture]]:
    """While the block runs, graphs for Vela are kept, and their digests are packed in the place of commands."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend

    captures: list[VelaCapture] = []
    with tool_hooks.lowering_traced() as trace:

        def keep(tosa_flatbuffer: bytes, *_: Any, **__: Any) -> Any:
            tosa = bytes(tosa_flatbuffer)
            payload = f"TOSA {filesystem.sha256_bytes(tosa)}".encode()
            digest = filesystem.sha256_bytes(payload)
            captures.append(VelaCapture(digest, len(payload), tosa, b"", b"", b"", 0, 0, trace.take()))
            return VelaCompileResult(payload)

        with patched(backend, vela_compile=keep):
            yield captures


def _write(
    folder: Path, manager: Any, captures: Sequence[VelaCapture], finder: SourceFinder, method: str, _: str
) -> tuple[Delegate, ...]:
    arguments = finished_program.delegate_arguments(manager, method)
    facts = []
    for index, turn in enumerate(
        vela_capture.run_turns(finished_program.delegate_payloads(manager, method), captures)
    ):
        made = captures[turn]
        found = {name: finder.find(meta) for name, meta in made.nodes.items()}
        sources = {name: line.to_json() for name, line in found.items() if line is not None}
        row = {"turn": turn, "arguments": arguments.get(index), "sources": sources}
        filesystem.write_bytes(folder / graph_file(index), made.tosa)
        filesystem.write_bytes(folder / origins_file(index), json.dumps(row).encode())
        facts.append(_delegate(index, made, ()))
    return tuple(facts)


WITHOUT_VELA = DelegateCompiler(_captured, _write)
