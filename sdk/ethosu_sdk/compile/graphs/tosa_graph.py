"""TOSA flatbuffers: their operators, tensors and outputs, and where values come from that were only moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base.errors import BuildError

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class TosaTensor:
    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TosaOperator:
    """One operator: its index in the block, its name such as ``CONV2D``, the names of its inputs and outputs."""

    index: int
    name: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()


def read_operators(data: bytes) -> tuple[TosaOperator, ...]:
    """All operators of the graph's first block. BuildError when `data` is no TOSA graph."""
    from tosa import Op

    names = {value: name for name, value in vars(Op.Op).items() if not name.startswith("_")}

    def operators(block: Any) -> tuple[TosaOperator, ...]:
        rows = [block.Operators(index) for index in range(block.OperatorsLength())]
        return tuple(
            TosaOperator(
                index=index,
                name=str(names[row.Op()]),
                outputs=tuple(row.Outputs(i).decode() for i in range(row.OutputsLength())),
                inputs=tuple(row.Inputs(i).decode() for i in range(row.InputsLength())),
            )
            for index, row in enumerate(rows)
        )

    return read_first_block(data, operators)


def graph_inputs(data: bytes) -> tuple[str, ...]:
    """The names of what the graph is given. BuildError when `data` is no TOSA graph."""
    return read_first_block(
        data, lambda block: tuple(block.Inputs(index).decode() for index in range(block.InputsLength()))
    )


def graph_outputs(data: bytes) -> tuple[TosaTensor, ...]:
    """What the graph returns. BuildError when `data` is no TOSA graph."""
    known = graph_tensors(data)
    names = read_first_block(
        data, lambda block: [block.Outputs(index).decode() for index in range(block.OutputsLength())]
    )
    return tuple(known[name] for name in names)


def graph_tensors(data: bytes) -> dict[str, TosaTensor]:
    """All tensors of the graph by name. BuildError when `data` is no TOSA graph."""

    def rows(block: Any) -> dict[str, TosaTensor]:
        found = (block.Tensors(index) for index in range(block.TensorsLength()))
        return {
            row.Name().decode(): TosaTensor(
                row.Name().decode(), tuple(row.Shape(i) for i in range(row.ShapeLength()))
            )
            for row in found
        }

    return read_first_block(data, rows)


def narrow_tensors(data: bytes) -> frozenset[str]:
    """The names of the tensors of 8 and 16 bits. BuildError when `data` is no TOSA graph."""
    from tosa.DType import DType

    def names(block: Any) -> frozenset[str]:
        found = (block.Tensors(index) for index in range(block.TensorsLength()))
        return frozenset(row.Name().decode() for row in found if row.Type() in (DType.INT8, DType.INT16))

    return read_first_block(data, names)


def read_first_block(data: bytes, reader: Callable[[Any], _Result]) -> _Result:
    """What `reader` makes of the first block. BuildError when it cannot, as with data that are no TOSA graph."""
    from tosa import TosaGraph

    try:
        return reader(TosaGraph.TosaGraph.GetRootAs(data).Regions(0).Blocks(0))
    except Exception as error:  # the reader is generated code: damage shows as any of many exceptions
        raise BuildError(f"the TOSA graph cannot be read: {type(error).__name__}") from error


# Where the elements of a tensor come from when operators only moved them is followed through the graph, exactly: no
# layout is guessed from shapes where values are cut out, joined, turned or padded. The operators' semantics are
# those of TOSA 1.0.

Places = NDArray[np.int64]

CONSTANT_PLACE = -1  # the place of an element that comes from no tensor


def _pad(parts: Sequence[Places], numbers: Sequence[int], _: Sequence[int]) -> Places:
    widths = list(zip(numbers[::2], numbers[1::2], strict=True))
    return np.pad(parts[0], widths, constant_values=CONSTANT_PLACE)


def _slice(parts: Sequence[Places], starts: Sequence[int], shape: Sequence[int]) -> Places:
    return parts[0][tuple(slice(at, at + size) for at, size in zip(starts, shape, strict=True))]


# How each operator that only moves values arranges those of its inputs, by its numbers and the shape of its result.
_FORMS: dict[str, Callable[[Sequence[Places], Sequence[int], Sequence[int]], Places]] = {
    "CONCAT": lambda parts, numbers, shape: np.concatenate(parts, axis=numbers[0]),
    "IDENTITY": lambda parts, numbers, shape: parts[0],
    "PAD": _pad,
    "RESHAPE": lambda parts, numbers, shape: parts[0].reshape(shape),
    "REVERSE": lambda parts, numbers, shape: np.flip(parts[0], numbers[0]),
    "SLICE": _slice,
    "TILE": lambda parts, numbers, shape: np.tile(parts[0], numbers),
    "TRANSPOSE": lambda parts, numbers, shape: parts[0].transpose(numbers),
}
MOVE_NAMES = frozenset(_FORMS)
_SAME_ORDER = frozenset({"IDENTITY", "RESHAPE"})


@dataclass(frozen=True)
class MovedTensor:
    """`places` of a tensor's elements among those of `sources`, one after the other; CONSTANT_PLACE for padding."""

    sources: tuple[str, ...]
    places: Places


@dataclass(frozen=True)
class _Move:
    """An operator of `_FORMS`: the tensors that it moves, and its permutation, starts, multiples, widths or axis."""

    name: str
    inputs: tuple[str, ...]
    numbers: tuple[int, ...]


class TosaMoves:
    """The operators of a graph that only move values."""

    def __init__(self, data: bytes) -> None:
        """`data` is a TOSA flatbuffer; `shapes` become those of its tensors by name. BuildError when it is none."""
        self.shapes = {name: row.shape for name, row in graph_tensors(data).items()}
        self._moves = read_first_block(data, lambda block: _moves(block, read_operators(data)))

    def __contains__(self, name: str) -> bool:
        return name in self._moves

    def operator(self, name: str) -> str:
        return self._moves[name].name

    def turned(self, name: str) -> str:
        """The moved tensor `name`, or the one that it was reshaped from: reshaping changes no order."""
        while (move := self._moves[name]).name in _SAME_ORDER and move.inputs[0] in self._moves:
            name = move.inputs[0]
        return name

    def size(self, name: str) -> int:
        return prod(self.shapes[name])

    def of(self, name: str) -> MovedTensor:
        """The origin of each element of the tensor `name`; of one that is computed, itself."""
        starts: dict[str, int] = {}
        places = self._places(name, starts)
        return MovedTensor(tuple(starts), places)

    def _places(self, name: str, starts: dict[str, int]) -> Places:
        """As :meth:`of`; `starts` has the place of each source's first element."""
        move, shape = self._moves.get(name), self.shapes[name]
        if move is not None:
            return _FORMS[move.name]([self._places(row, starts) for row in move.inputs], move.numbers, shape)
        first = starts.setdefault(name, sum(map(self.size, starts)))
        return np.arange(first, first + self.size(name), dtype=np.int64).reshape(shape)


def _moves(block: Any, operators: Sequence[TosaOperator]) -> dict[str, _Move]:
    constants = _constants(block)
    made: set[str] = {block.Inputs(index).decode() for index in range(block.InputsLength())}
    found = {}
    for row in operators:
        # Each reads what was made before: no circle, whatever the file holds.
        if row.name in _FORMS and made.issuperset(row.inputs):
            found[row.outputs[0]] = _move(block.Operators(row.index), row, constants)
        made.update(row.outputs)
    return found


def _constants(block: Any) -> dict[str, tuple[int, ...]]:
    rows = (block.Shapes(index) for index in range(block.ShapesLength()))
    return {
        row.Name().decode(): tuple(map(int, np.asarray(row.DataAsNumpy(), np.uint8).view("<i8")))
        for row in rows
        if row.DataLength()
    }


def _move(operator: Any, row: TosaOperator, constants: dict[str, tuple[int, ...]]) -> _Move:
    from tosa import ConcatAttribute, ReverseAttribute, TransposeAttribute

    if row.name == "CONCAT":
        return _Move(row.name, row.inputs, (_attribute(operator, ConcatAttribute.ConcatAttribute).Axis(),))
    numbers: tuple[int, ...] = ()
    if row.name == "TRANSPOSE":
        numbers = tuple(map(int, _attribute(operator, TransposeAttribute.TransposeAttribute).PermsAsNumpy()))
    elif row.name == "REVERSE":
        numbers = (_attribute(operator, ReverseAttribute.ReverseAttribute).Axis(),)
    elif len(row.inputs) > 1:  # of a slice its starts, which stand ahead of its sizes
        numbers = constants.get(row.inputs[1], ())
    return _Move(row.name, row.inputs[:1], numbers)


def _attribute(operator: Any, kind: Any) -> Any:
    table, attribute = operator.Attribute(), kind()
    attribute.Init(table.Bytes, table.Pos)
    return attribute
