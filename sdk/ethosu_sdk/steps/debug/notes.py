"""What `compile` left beside a program of each delegate: its TOSA graph and Vela's debug database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot.graph import tosa_operators
from ethosu_sdk.aot.graph.tosa_moves import Moves
from ethosu_sdk.aot.vela import written_tensors
from ethosu_sdk.aot.vela.written_tensors import WrittenTensor
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import hashing, opening
from ethosu_sdk.records.compile import Delegate, Operation
from ethosu_sdk.results import locations
from ethosu_sdk.results.reading import of_program

_MOST_BYTES = 1 << 30
_CONSTANTS = ("CONST", "CONST_SHAPE")
_MAKE = "compile the model again: ethosu-sdk compile writes these files"


@dataclass(frozen=True)
class DelegateNotes:
    """`record` is the delegate's entry in the compile record, `written` what Vela's operations write. `shapes` are
    those of the TOSA graph's tensors by name, `inputs` the tensors that each is computed from, constants left out;
    `given` and `results` are the graph's inputs and outputs, and `moves` its operators that only move values."""

    record: Delegate
    written: tuple[WrittenTensor, ...]
    shapes: dict[str, tuple[int, ...]]
    inputs: dict[str, tuple[str, ...]]
    given: tuple[str, ...]
    results: tuple[str, ...]
    moves: Moves

    def origins(self, offsets: Sequence[int]) -> list[Operation]:
        """The entries of what Vela scheduled as the NPU operations at `offsets`, in its order."""
        return [row for row in self.record.operations if set(row.offsets) & set(offsets)]


def read_notes(path: Path) -> dict[int, DelegateNotes]:
    """The notes of the program at `path` by its delegates; none where there is no compile record of this program.

    Raises InputError when a file that the record names is missing or damaged.
    """
    file = locations.compile_record(path)
    if not file.is_file():
        return {}
    record = of_program(file, hashing.sha256_file(path))
    return {} if record is None else {row.index: _delegate(path.parent, row) for row in record.delegates}


def _delegate(folder: Path, row: Delegate) -> DelegateNotes:
    tosa = _content(folder / row.files.tosa)
    xml = _content(folder / row.files.debug)
    try:
        shapes = {name: tensor.shape for name, tensor in tosa_operators.tensors(tosa).items()}
        operators = tosa_operators.read(tosa)
        written = written_tensors.read(xml)
        given, moves = tosa_operators.inputs(tosa), Moves(tosa)
        results = tuple(tensor.name for tensor in tosa_operators.outputs(tosa))
    except BuildError as error:
        raise InputError(f"the files of delegate {row.index} in {folder}: {error.message}", _MAKE) from error
    constants = {name for op in operators if op.name in _CONSTANTS for name in op.outputs}
    inputs = {
        output: tuple(name for name in op.inputs if name not in constants)
        for op in operators
        if op.name not in _CONSTANTS
        for output in op.outputs
    }
    return DelegateNotes(row, written, shapes, inputs, given, results, moves)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"there is no file {path}, which the compile record names", _MAKE)
    content = opening.content(path, _MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path} has more than {_MOST_BYTES:,} bytes", _MAKE)
    return content
