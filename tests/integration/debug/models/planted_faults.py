"""A network of ten branches, and the same with a fault in the program of each: in the TOSA graph, as if the lowering
were wrong, or in what Vela is given, as if Vela were.

The faults are planted in the compiler process that loads this file as a model, and nowhere else.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

LEAST, MOST = -0.3, 0.4


class Moving(nn.Module):
    """A convolution of values that are moved first."""

    def __init__(self, move: Callable[[Any], Any], channels: int) -> None:
        super().__init__()
        self.move, self.conv = move, nn.Conv2d(4, channels, 1)

    def forward(self, values: Any) -> Any:
        return self.conv(self.move(values))


class Rectified(nn.Module):
    """A ReLU whose values share their scale with what goes below zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Sequential(nn.Conv2d(4, 11, 1), nn.ReLU()), nn.Conv2d(11, 4, 1)

    def forward(self, values: Any) -> Any:
        values = self.first(values)
        return torch.cat([self.second(values), values], 1)


class Joined(nn.Module):
    """A convolution of two that are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.last = nn.Conv2d(4, 15, 1), nn.Conv2d(4, 15, 1), nn.Conv2d(30, 3, 1)

    def forward(self, values: Any) -> Any:
        return self.last(torch.cat([self.left(values), self.right(values)], 1))


class Branches(nn.Module):
    """Each branch has sizes of its own, by which its operators are found in the TOSA graph."""

    def __init__(self) -> None:
        super().__init__()
        self.weights, self.bias = nn.Conv2d(4, 5, 1), nn.Conv2d(4, 6, 1)
        self.scale, self.zero_point = nn.Conv2d(4, 7, 1), nn.Conv2d(4, 9, 1)
        self.clamp = nn.Sequential(nn.Conv2d(4, 10, 1), nn.Hardtanh(LEAST, MOST))
        self.relu, self.joined = Rectified(), Joined()
        self.turned = Moving(lambda values: values.transpose(2, 3), 13)
        self.cut = Moving(lambda values: values[:, 2:6], 14)
        self.table = nn.Sequential(nn.Conv2d(4, 12, 1), nn.Sigmoid())

    def forward(self, image: Any, square: Any, deep: Any) -> tuple[Any, ...]:
        alone = (
            self.weights,
            self.bias,
            self.scale,
            self.zero_point,
            self.clamp,
            self.relu,
            self.joined,
            self.table,
        )
        return *(branch(image) for branch in alone), self.turned(square), self.cut(deep)


OUTPUTS = ("weights", "bias", "scale", "zero_point", "clamp", "relu", "joined", "table", "turned", "cut")


def _operator(block: Any, name: str, *sizes: int) -> Any:
    """The only operator `name` whose result has axes of these `sizes`, in any order."""
    from tosa.Op import Op

    shapes = {}
    for index in range(block.TensorsLength()):
        tensor = block.Tensors(index)
        shapes[tensor.Name()] = sorted(tensor.Shape(axis) for axis in range(tensor.ShapeLength()))
    rows = (block.Operators(index) for index in range(block.OperatorsLength()))
    (found,) = [
        row for row in rows if row.Op() == getattr(Op, name) and shapes[row.Outputs(0)] == sorted(sizes)
    ]
    return found


def _constant(block: Any, operator: Any, place: int, dtype: str) -> Any:
    """The values of an operator's input, which can be written to."""
    tensors = [block.Tensors(index) for index in range(block.TensorsLength())]
    shapes = [block.Shapes(index) for index in range(block.ShapesLength())]
    found = next(row for row in (*tensors, *shapes) if row.Name() == operator.Inputs(place))
    return found.DataAsNumpy().view(dtype)


def _attribute(operator: Any, kind: Any) -> Any:
    table, found = operator.Attribute(), kind()
    found.Init(table.Bytes, table.Pos)
    return found


def _exchange_inputs(operator: Any) -> None:
    """Each offset of a flatbuffer's vector counts from where it stands."""
    vector = operator._tab.Vector(operator._tab.Offset(10))
    offsets = memoryview(operator._tab.Bytes)[vector : vector + 8].cast("I")
    offsets[0], offsets[1] = offsets[1] + 4, offsets[0] - 4


def wrong_lowering(block: Any) -> None:
    """Change a TOSA graph."""
    from tosa.ClampAttribute import ClampAttribute
    from tosa.TransposeAttribute import TransposeAttribute

    multipliers = _constant(block, _operator(block, "RESCALE", 1, 8, 8, 7), 1, "<i4")
    multipliers[:] = multipliers * 0.6
    zero_point = _constant(block, _operator(block, "RESCALE", 1, 8, 8, 9), 4, "i1")
    zero_point[:] = zero_point + 25
    relu = _attribute(_operator(block, "CLAMP", 1, 11, 8, 8), ClampAttribute)
    relu.MinValAsNumpy().view("i1")[:] = -128
    turned = _attribute(_operator(block, "TRANSPOSE", 1, 6, 6, 4), TransposeAttribute)
    turned.PermsAsNumpy()[:] = [0, 2, 3, 1]
    _constant(block, _operator(block, "SLICE", 1, 8, 8, 4), 1, "<i8")[3] = 1
    _exchange_inputs(_operator(block, "CONCAT", 1, 8, 8, 30))
    table = _constant(block, _operator(block, "TABLE", 1, 8, 8, 12), 1, "i1")
    table[:] = table[::-1].copy()


def wrong_vela(block: Any) -> None:
    """Change what Vela compiles."""
    from tosa.ClampAttribute import ClampAttribute

    weights = _constant(block, _operator(block, "CONV2D", 1, 8, 8, 5), 1, "i1")
    weights[:] = weights[::-1].copy()
    bias = _constant(block, _operator(block, "CONV2D", 1, 8, 8, 6), 2, "<i4")
    bias[:] = bias + 3000
    clamp = _attribute(_operator(block, "CLAMP", 1, 10, 8, 8), ClampAttribute)
    clamp.MaxValAsNumpy().view("i1")[:] = 127


def _before(function: Callable[..., Any], change: Callable[[Any], None]) -> Callable[..., Any]:
    """`function` of a TOSA graph, which is changed first."""
    from tosa.TosaGraph import TosaGraph

    def call(graph: bytes, *args: Any, **named: Any) -> Any:
        changed = bytearray(graph)
        change(TosaGraph.GetRootAs(changed, 0).Regions(0).Blocks(0))
        return function(bytes(changed), *args, **named)

    return call


def right() -> tuple[Any, Any]:
    """The network, and its inputs."""
    torch.manual_seed(0)
    return Branches().eval(), samples[0]


def faulty() -> tuple[Any, Any]:
    """The same, with all of the faults in its program."""
    from executorch.backends.arm.ethosu import backend

    compiled = backend.EthosUBackend._compile_tosa_flatbuffer
    backend.EthosUBackend._compile_tosa_flatbuffer = staticmethod(_before(compiled, wrong_lowering))
    backend.vela_compile = _before(backend.vela_compile, wrong_vela)
    return right()


_random = torch.Generator().manual_seed(1)
samples = [
    tuple(
        torch.randn(1, channels, size, size, generator=_random) for channels, size in ((4, 8), (4, 6), (8, 8))
    )
    for _ in range(9)
]
calibration = samples[1:]
