"""Elementwise arithmetic, comparisons, bitwise and logical operators, and functions of one value."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.models.case import U85, Case, Integers, Shape, function, layers

_IMAGE: tuple[Shape, ...] = ((1, 8, 12, 10),)
_PAIR: tuple[Shape, ...] = ((1, 18, 7, 9), (1, 18, 7, 9))
_INT32 = (Integers((1, 18, 7, 9)), Integers((1, 18, 7, 9)))
_BROADCAST: tuple[Shape, ...] = ((1, 18, 7, 9), (1, 18, 1, 1), (1, 1, 1, 9))
_BOTH_BROADCAST: tuple[Shape, ...] = ((1, 18, 1, 9), (1, 1, 7, 1))


def arithmetic(_: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """The three operations, on unlike scales."""
    return x + 3 * y, x - y, x * y


def broadcasts(_: Any, x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    """The second operand, or the first one, broadcast."""
    return x + y, z - x, x * z, y - x, x - z


def constants(torch: Any, x: Any) -> tuple[Any, ...]:
    """Operands that are constants."""
    return x + 1.5, 0.7 - x, 2.5 * x, torch.abs(x), -x, torch.clamp(x, -0.5, 1.25)


def extrema(torch: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Minimum and maximum on like and on unlike scales."""
    return torch.minimum(x, y), torch.maximum(x, 2 * y)


def comparisons(_: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """All six, as booleans."""
    return x > y, x >= y, x < y, x <= y, x == y, x != y


def scalar_comparisons(_: Any, x: Any) -> tuple[Any, ...]:
    """All six against a constant."""
    return x > 0.5, x >= 0.25, x < -0.5, x <= 1.0, x == 0.0, x != 0.0


def choices(torch: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Values chosen by a condition."""
    return torch.where(x > y, x, y), torch.where(x < 0.5, 2 * x, y), x.masked_fill(y > 1.0, -1.0)


def logic(torch: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Boolean operators on comparisons."""
    a, b = x > 0.0, y > 0.5
    return torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b), torch.logical_not(a)


def bits(_: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Bitwise operators."""
    return x & y, x | y, x ^ y, ~x


def shifts(_: Any, x: Any) -> tuple[Any, ...]:
    """Shifts by constants."""
    return x >> 3, x << 2


def activations(torch: Any, x: Any) -> tuple[Any, ...]:
    """Activations that become look-up tables or clamps."""
    f = torch.nn.functional
    return (
        f.relu(x),
        f.hardswish(x),
        torch.sigmoid(x),
        torch.tanh(x),
        f.silu(x),
        f.gelu(x),
        f.leaky_relu(x, 0.2),
    )


def more_activations(torch: Any, x: Any) -> tuple[Any, ...]:
    """The rarer ones."""
    f = torch.nn.functional
    return f.relu6(x), f.elu(x), f.hardsigmoid(x), f.hardtanh(x), f.selu(x), f.softplus(x), f.mish(x)


def mathematics(torch: Any, x: Any) -> tuple[Any, ...]:
    """Functions of one value."""
    positive = x.abs() + 0.5
    return (
        torch.exp(x),
        torch.log(positive),
        torch.rsqrt(positive),
        torch.reciprocal(positive),
        torch.sqrt(positive),
        torch.sin(x),
        torch.erf(x),
        torch.pow(x, 2),
        torch.pow(positive, 1.5),
    )


def rounding(torch: Any, x: Any) -> tuple[Any, ...]:
    """Functions with steps."""
    return torch.floor(3 * x), torch.ceil(3 * x), torch.round(3 * x), torch.atan(x), torch.log1p(x.abs())


def int16_tables(torch: Any, x: Any) -> tuple[Any, ...]:
    """Interpolated tables of 512 steps."""
    f = torch.nn.functional
    return torch.tanh(x), torch.sigmoid(x), f.gelu(x), torch.exp(-x.abs()), torch.rsqrt(x.abs() + 0.5)


ELEMENTWISE: Mapping[str, Case] = {
    "arithmetic": Case(function(arithmetic), _PAIR),
    "arithmetic_int16": Case(function(arithmetic), _PAIR, "int16"),
    "arithmetic_int32": Case(function(lambda _, x, y: (x + y, x - y, x * y)), _INT32, "none"),
    "arithmetic_batch": Case(function(arithmetic), ((3, 5, 4, 7), (3, 5, 4, 7))),
    "arithmetic_rank_2": Case(function(arithmetic), ((7, 33), (7, 33))),
    "broadcast": Case(function(broadcasts), _BROADCAST),
    "broadcast_int16": Case(function(broadcasts), _BROADCAST, "int16"),
    "broadcast_int32": Case(
        function(lambda _, x, y: (x + y, y - x, x * y)),
        (Integers((1, 18, 7, 9)), Integers((1, 18, 1, 1))),
        "none",
    ),
    "broadcast_both": Case(function(lambda _, x, y: (x + y, x * y, y - x)), _BOTH_BROADCAST),
    "constants": Case(function(constants), _IMAGE),
    "constants_int16": Case(function(constants), _IMAGE, "int16"),
    "minimum_maximum": Case(function(extrema), _PAIR),
    "minimum_maximum_int16": Case(function(extrema), _PAIR, "int16"),
    "minimum_maximum_int32": Case(
        function(lambda torch, x, y: (torch.minimum(x, y), torch.maximum(x, y), torch.abs(x))), _INT32, "none"
    ),
    "division": Case(function(lambda _, x, y: (x / (y.abs() + 0.5), x / 3.0)), _PAIR),
    "prelu": Case(layers(lambda nn: nn.PReLU(8)), _IMAGE),
    "prelu_int16": Case(layers(lambda nn: nn.PReLU(8)), _IMAGE, "int16"),
    "activations": Case(function(activations), _IMAGE),
    "more_activations": Case(function(more_activations), _IMAGE),
    "mathematics": Case(function(mathematics), _IMAGE),
    "rounding": Case(function(rounding), _IMAGE),
    "tables_int16": Case(function(int16_tables), _IMAGE, "int16"),
}

LOGIC: Mapping[str, Case] = {
    "comparisons": Case(function(comparisons), _PAIR, profiles=U85),
    "comparisons_int16": Case(function(comparisons), _PAIR, "int16", profiles=U85),
    "comparisons_int32": Case(
        function(comparisons),
        (Integers((1, 6, 7, 9), -3, 3), Integers((1, 6, 7, 9), -3, 3)),
        "none",
        U85,
        (-3, 3),
    ),
    "comparisons_scalar": Case(function(scalar_comparisons), _IMAGE, profiles=U85),
    "comparisons_broadcast": Case(
        function(lambda _, x, y: (x > y, y >= x, x == y)), _BOTH_BROADCAST, profiles=U85
    ),
    "where": Case(function(choices), _PAIR, profiles=U85),
    "where_int16": Case(function(choices), _PAIR, "int16", profiles=U85),
    "where_int32": Case(
        function(lambda torch, x, y: (torch.where(x > y, x, y), torch.where(x == y, x, y - 1))),
        _INT32,
        "none",
        profiles=U85,
    ),
    "logic": Case(function(logic), _PAIR, profiles=U85),
    "bits_int32": Case(function(bits), _INT32, "none", profiles=U85, int32_range=(-(1 << 31), (1 << 31) - 1)),
    "shifts_int32": Case(function(shifts), (Integers((1, 18, 7, 9)),), "none"),
}
