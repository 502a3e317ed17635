"""The operators and outputs of a TOSA flatbuffer, in the file's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ethosu_sdk.errors import BuildError

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class TosaTensor:
    """One tensor of the graph."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TosaOperator:
    """One operator: its index in the block, its name such as ``CONV2D``, the names of its inputs and outputs."""

    index: int
    name: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()


def read(data: bytes) -> tuple[TosaOperator, ...]:
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

    return of_first_block(data, operators)


def inputs(data: bytes) -> tuple[str, ...]:
    """The names of what the graph is given. BuildError when `data` is no TOSA graph."""
    return of_first_block(
        data, lambda block: tuple(block.Inputs(index).decode() for index in range(block.InputsLength()))
    )


def outputs(data: bytes) -> tuple[TosaTensor, ...]:
    """What the graph returns. BuildError when `data` is no TOSA graph."""
    known = tensors(data)
    names = of_first_block(
        data, lambda block: [block.Outputs(index).decode() for index in range(block.OutputsLength())]
    )
    return tuple(known[name] for name in names)


def tensors(data: bytes) -> dict[str, TosaTensor]:
    """All tensors of the graph by name. BuildError when `data` is no TOSA graph."""

    def rows(block: Any) -> dict[str, TosaTensor]:
        found = (block.Tensors(index) for index in range(block.TensorsLength()))
        return {
            row.Name().decode(): TosaTensor(
                row.Name().decode(), tuple(row.Shape(i) for i in range(row.ShapeLength()))
            )
            for row in found
        }

    return of_first_block(data, rows)


def narrow_tensors(data: bytes) -> frozenset[str]:
    """The names of the tensors of 8 and 16 bits. BuildError when `data` is no TOSA graph."""
    from tosa.DType import DType

    def names(block: Any) -> frozenset[str]:
        found = (block.Tensors(index) for index in range(block.TensorsLength()))
        return frozenset(row.Name().decode() for row in found if row.Type() in (DType.INT8, DType.INT16))

    return of_first_block(data, names)


def of_first_block(data: bytes, reader: Callable[[Any], _Result]) -> _Result:
    """What `reader` makes of the first block. BuildError when it cannot, as with data that are no TOSA graph."""
    from tosa import TosaGraph

    try:
        return reader(TosaGraph.TosaGraph.GetRootAs(data).Regions(0).Blocks(0))
    except Exception as error:  # the reader is generated code: damage shows as any of many exceptions
        raise BuildError(f"the TOSA graph cannot be read: {type(error).__name__}") from error
