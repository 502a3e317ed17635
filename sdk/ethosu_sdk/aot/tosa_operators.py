"""The operators of a TOSA flatbuffer, in the file's order."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import BuildError


@dataclass(frozen=True)
class TosaOperator:
    """One operator: its index in the block, its name such as ``CONV2D``, the names of its outputs."""

    index: int
    name: str
    outputs: tuple[str, ...]


def read(data: bytes) -> tuple[TosaOperator, ...]:
    """All operators of the graph's first block. BuildError when `data` is no TOSA graph."""
    from tosa import Op, TosaGraph

    names = {value: name for name, value in vars(Op.Op).items() if not name.startswith("_")}
    try:
        block = TosaGraph.TosaGraph.GetRootAs(data).Regions(0).Blocks(0)
        rows = [block.Operators(index) for index in range(block.OperatorsLength())]
        return tuple(
            TosaOperator(
                index=index,
                name=str(names[row.Op()]),
                outputs=tuple(row.Outputs(i).decode() for i in range(row.OutputsLength())),
            )
            for index, row in enumerate(rows)
        )
    except Exception as error:  # the reader is generated code: damage shows as any of many exceptions
        raise BuildError(f"the TOSA graph cannot be read: {type(error).__name__}") from error
