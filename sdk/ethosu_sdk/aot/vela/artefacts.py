"""The files of a compilation, named by the delegate's index in the finished `.pte`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk import npz, pte
from ethosu_sdk.aot.facts.compilation import DelegateFacts, OperationFacts
from ethosu_sdk.aot.graph import arrays, program_facts, tensors, tosa_operators
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela import capture, debug_database, delegate_outputs, delegate_tables, delegate_weights
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.errors import BuildError
from ethosu_sdk.files import locks, writing

LOG_NAME = "compile.log"

_SUFFIXES = {
    "tosa": ".tosa",
    "summary_csv": ".summary.csv",
    "per_layer_csv": ".per-layer.csv",
    "debug_xml": ".debug.xml",
}
_ARTEFACT = re.compile(r"(\w+\.)?delegate\d+(\.tosa|\.summary\.csv|\.per-layer\.csv|\.debug\.xml)")


@contextlib.contextmanager
def published(folder: Path, *optional: str) -> Iterator[Path]:
    """An empty folder whose files replace those of `folder` when the block ends well, and are removed otherwise.

    Artefacts of delegates that an earlier compilation left are removed, and of the files `optional` those that are
    not written this time. BuildError when the disk refuses.
    """
    try:
        with locks.temporary_directory(".compile-", folder) as temporary:
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


def write_io(path: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Write the example inputs and outputs of a program to `path`."""
    given, computed = ([tensors.as_numpy(item) for item in row] for row in (inputs, outputs))
    npz.write_npz(path, arrays.io_arrays(given, computed))


def write_delegates(
    folder: Path,
    manager: Any,
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
    method: str = pte.ENTRY,
    prefix: str = "",
) -> tuple[DelegateFacts, ...]:
    """Write the artefacts of each delegate of a method, in files that begin with `prefix`, and return the facts in
    the program's order.

    BuildError when a delegate has no Vela run, or not all outputs of its graph, or weights for other channels than
    its layers have; InputError when it loses a look-up table.
    """
    arguments = program_facts.delegate_arguments(manager, method)
    payloads = list(program_facts.delegate_payloads(manager, method))
    facts = []
    for index, turn in enumerate(capture.turns(payloads, captures)):
        payload, made = payloads[index], captures[turn]
        delegate_outputs.check(index, payload, made, finder)
        delegate_outputs.check_call(index, payload, made, finder, arguments.get(index))
        facts.append(write_one(folder, index, made, finder, prefix))
        delegate_weights.check(facts[-1], made.debug_xml)
        delegate_tables.check(facts[-1], payload)
    return tuple(facts)


def _file_names(index: int, prefix: str) -> dict[str, str]:
    return {part: f"{prefix}delegate{index}{suffix}" for part, suffix in _SUFFIXES.items()}


def write_one(
    folder: Path, index: int, made: VelaCapture, finder: SourceFinder, prefix: str = ""
) -> DelegateFacts:
    names = _file_names(index, prefix)
    for part, name in names.items():
        writing.write_bytes(folder / name, getattr(made, part))
    return DelegateFacts(
        index=index,
        payload_sha256=made.payload_sha256,
        payload_bytes=made.payload_bytes,
        tosa_file=names["tosa"],
        summary_file=names["summary_csv"],
        per_layer_file=names["per_layer_csv"],
        debug_file=names["debug_xml"],
        scratch_bytes=made.scratch_bytes,
        scratch_fast_bytes=made.scratch_fast_bytes,
        estimates=made.estimates,
        operations=_operations(made, finder),
    )


def _operations(made: VelaCapture, finder: SourceFinder) -> tuple[OperationFacts, ...]:
    """The command stream's operations, each joined with its TOSA operator and its line in the model."""
    graph = tosa_operators.read(made.tosa)
    facts = []
    for row in debug_database.scheduled_operations(made.debug_xml):
        known = row.tosa_index is not None and row.tosa_index < len(graph)
        origin = graph[row.tosa_index] if known and row.tosa_index is not None else None
        tensor = origin.outputs[0] if origin is not None and origin.outputs else None
        meta = made.nodes.get(tensor, {}) if tensor is not None else {}
        facts.append(
            OperationFacts(
                operator=row.operator,
                name=row.name,
                offsets=row.offsets,
                cycles=row.cycles,
                macs=row.macs,
                staging_bytes=row.staging_bytes,
                tosa_index=origin.index if origin is not None else None,
                tosa_operator=origin.name if origin is not None else None,
                tosa_tensor=tensor,
                source=finder.find(meta),
            )
        )
    return tuple(facts)
