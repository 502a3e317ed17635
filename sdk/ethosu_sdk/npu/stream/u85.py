"""Ethos-U85: what its registers say about an operation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ethosu_sdk.npu.operation import (
    UNARY,
    UNSCALED,
    Curve,
    ElementwiseMode,
    Kind,
    Lut,
    Mode,
    Operand,
    Output,
    PoolMode,
    ResizeAxis,
    ResizeMode,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Scaling,
    Shape,
    WeightStreams,
)
from ethosu_sdk.npu.stream.registers import (
    Accumulator,
    Registers,
    clip_limits,
    feature_map,
    scale_of,
    signed,
    streams_of,
)

_MEMORY, _CHAINED, _NONE = 0, 2, 3  # activation_storage; 1, a tile of 3x1, is never emitted
_OFM_ROUNDING = {
    0: Rounding.DOUBLE,
    1: Rounding.NATURAL,
    2: Rounding.DOUBLE_UP,
    3: Rounding.SYMMETRIC,
    4: Rounding.TOWARDS_ZERO,
    5: Rounding.DOWN,
}
_IFM_ROUNDING = {0: Rounding.DOUBLE, 1: Rounding.NATURAL}
_ACCUMULATOR_BITS = {0: 32, 1: 48}
_UNACCUMULATED = frozenset({Kind.ELEMENTWISE, Kind.RESIZE})
_STARTS = {0: "zero", 1: "kept", 2: "ifm2"}  # acc_input
_MICRO_BLOCKS = {0: (1, 1), 1: (1, 2), 2: (1, 4), 3: (2, 2), 4: (2, 4), 5: (4, 4)}  # height, width
_REVERSED = {0: None, 1: 0, 2: 1, 3: 2}  # axis of (height, width, depth)
# The axes of the stored feature map, by number: HWC, WHC, HCW, WCH, CHW, CWH.
_TRANSPOSED = {0: None, 1: (1, 0, 2), 2: (0, 2, 1), 3: (1, 2, 0), 6: (2, 0, 1), 7: (2, 1, 0)}
# activation_function → types of a table's indices and results.
_LUTS = {
    1: ("<u1", "<u1"),
    4: ("<i1", "<i1"),
    5: ("<i1", "<i2"),
    7: ("<i1", "<i4"),
    8: ("<i2", "<i2"),
    9: ("<i2", "<i4"),
    10: ("<i2", "<i2"),
    11: ("<i2", "<i2"),
}
_CURVES = {10: Curve.TANH, 11: Curve.SIGMOID}  # of these functions, with the table's points
# RESIZE brings its sums to the output stage shifted by this much; OFM_SCALE makes up for it.
_RESIZE_SHIFT = 16
_MOST_EARLY = 30  # the first of two roundings cannot be below bit 0
_WEIGHTS = ("WEIGHT", "WEIGHT1", "WEIGHT2", "WEIGHT3")

modes: dict[Kind, frozenset[Mode]] = {
    Kind.POOL: frozenset(PoolMode),
    Kind.ELEMENTWISE: frozenset(ElementwiseMode),
    Kind.RESIZE: frozenset({ResizeMode.BILINEAR, ResizeMode.NEAREST}),
}


def chain(registers: Registers, prefix: str) -> int | None:
    """The buffer's number, which stands in place of the region."""
    register = f"{prefix}_PRECISION"
    places = {_MEMORY: False, _NONE: False, _CHAINED: True}
    if registers.choose(register, "activation_storage", places, "feature map tiles of 3x1"):
        return registers.field(f"{prefix}_REGION", "region")
    return None


def _scaling(registers: Registers, register: str, rounding: dict[int, Rounding]) -> Scaling:
    if registers.executable:
        mode = registers.choose(register, "round_mode", rounding, "rounding mode")
    else:  # rounding costs nothing
        mode = rounding.get(registers.field(register, "round_mode"), Rounding.NATURAL)
    early = registers.field(register, "dbl_rnd")
    if early > _MOST_EARLY and registers.executable:
        raise registers.unsupported(register, "double rounding at a bit that does not exist")
    return Scaling(registers.field(register, "scale"), registers.field(register, "shift"), mode, early)


def output(registers: Registers, kind: Kind, mode: Mode | None, dtype: np.dtype[Any]) -> Output:
    """The output stage."""
    is_global = bool(registers.field("OFM_PRECISION", "scale_mode"))
    scaling = _scaling(registers, "OFM_SCALE", _OFM_ROUNDING)
    if kind is Kind.RESIZE and registers.executable:
        scaling = _resize_scaling(registers, scaling)
    lut = _lut(registers)
    index = lut.index if lut is not None else dtype
    no_clip = registers.field("ACTIVATION", "activation_clip_range")
    return Output(
        scaled=mode not in UNSCALED and (is_global or kind is not Kind.ELEMENTWISE),
        scale=scale_of(registers, mode, scaling.scale) if is_global else None,
        shift=scaling.shift if is_global else 0,
        rounding=scaling.rounding,
        early=scaling.early,
        clamp=None if no_clip else clip_limits(registers, index),
        lut=lut,
        curve=_CURVES.get(registers.field("ACTIVATION", "activation_function")),
        reverse=_REVERSED[registers.field("OFM_PRECISION", "activation_reverse")],
        transpose=registers.choose(
            "OFM_PRECISION", "activation_transpose", _TRANSPOSED, "order of the OFM's axes"
        ),
    )


def _resize_scaling(registers: Registers, scaling: Scaling) -> Scaling:
    """The scaling with the accumulators' shift taken out of it: the same result in fewer bits."""
    twice = scaling.rounding in (Rounding.DOUBLE, Rounding.DOUBLE_UP)
    too_long = twice and scaling.shift > 31 - scaling.early
    if scaling.shift < _RESIZE_SHIFT or too_long:
        raise registers.unsupported("OFM_SCALE", "scale of a RESIZE")
    return replace(scaling, shift=scaling.shift - _RESIZE_SHIFT)


def _lut(registers: Registers) -> Lut | None:
    function = registers.field("ACTIVATION", "activation_function")
    if not function:
        return None
    index, result = (
        np.dtype(name)
        for name in registers.choose("ACTIVATION", "activation_function", _LUTS, "activation function")
    )
    return Lut(registers.field("ACTIVATION", "table") * Lut(0, index, result).end, index, result)


def operands(registers: Registers, mode: Mode) -> tuple[Operand, ...]:
    """IFM and IFM2; either may be broadcast or be the scalar."""
    first = _operand(registers, "IFM", mode)
    return (first,) if mode in UNARY else (first, _operand(registers, "IFM2", mode))


def _operand(registers: Registers, prefix: str, mode: Mode) -> Operand:
    values = feature_map(registers, prefix, chain(registers, prefix))
    repeated = registers.field(f"{prefix}_BROADCAST", "broadcast_mode")
    is_scalar = repeated & 8 or registers.field(f"{prefix}_PRECISION", "activation_storage") == _NONE
    scaling = _input_scaling(registers, prefix)
    if scaling is not None and mode in (ElementwiseMode.MUL, ElementwiseMode.DIV):
        raise registers.unsupported(f"{prefix}_SCALE", "scale of an operand that has none")
    return Operand(
        values,
        (bool(repeated & 1), bool(repeated & 2), bool(repeated & 4)),
        _scalar(registers, values.dtype) if is_scalar else None,
        scaling,
        _input_scaling(registers, "IFM2") if mode is ElementwiseMode.LRELU else None,
    )


def _input_scaling(registers: Registers, prefix: str) -> Scaling | None:
    scaling = _scaling(registers, f"{prefix}_SCALE", _IFM_ROUNDING)
    return None if (scaling.scale, scaling.shift) == (1, 0) else scaling


def _scalar(registers: Registers, dtype: np.dtype[Any]) -> int:
    """OP_SCALAR as a feature map's element: its low bits."""
    bits = min(8 * dtype.itemsize, 32)
    value = registers.field("OP_SCALAR", "scalar") & (1 << bits) - 1
    return signed(value, bits) if dtype.kind == "i" else value


def weights(registers: Registers) -> WeightStreams:
    """One stream per core, or for the fast format a single one."""
    fast = bool(registers.field("WEIGHT_FORMAT", "weight_format"))
    sparse = bool(registers.field("WEIGHT_FORMAT", "weight_sparsity"))
    count = 1 if fast else registers.config.cores
    return WeightStreams(streams_of(registers, _WEIGHTS[:count], "WEIGHT"), fast, sparse)


def scales(registers: Registers, accumulator_bits: int) -> ScaleStreams:
    """One stream for all cores. Wider accumulators have a wider bias and a narrower scale."""
    form = ScaleFormat.BIAS_32 if accumulator_bits == _ACCUMULATOR_BITS[0] else ScaleFormat.BIAS_48
    return ScaleStreams(streams_of(registers, ("SCALE",), "SCALE"), form)


def accumulator(registers: Registers, kind: Kind) -> Accumulator:
    """Elementwise operations and RESIZE have no accumulators to choose."""
    goes_nowhere = registers.field("OFM_PRECISION", "activation_storage") == _NONE
    is_partial = kind not in _UNACCUMULATED and bool(registers.field("ACC_FORMAT", "acc_output"))
    if is_partial != goes_nowhere:
        raise registers.unsupported("OFM_PRECISION", "sums that are written and not stored, or the reverse")
    if kind in _UNACCUMULATED:
        return Accumulator(_ACCUMULATOR_BITS[0])
    bits = registers.choose("ACC_FORMAT", "acc_format", _ACCUMULATOR_BITS, "accumulator format")
    start = registers.choose("ACC_FORMAT", "acc_input", _STARTS, "start of the accumulators")
    return Accumulator(bits, start == "ifm2", start == "kept", is_partial)


def micro_block(registers: Registers) -> Shape:
    """Height and width are chosen by the operation; what the MACs leave is the depth."""
    height, width = registers.choose("ACC_FORMAT", "microblock", _MICRO_BLOCKS, "micro-block")
    return height, width, max(1, registers.config.macs // 8 // (height * width))


def resize(registers: Registers) -> tuple[ResizeAxis, ResizeAxis]:
    """The sampling along height and width."""
    return _resize_axis(registers, "Y"), _resize_axis(registers, "X")


def _resize_axis(registers: Registers, axis: str) -> ResizeAxis:
    denominator = registers.field(f"RESIZE_{axis}_SCALE_N_M1", f"resize_{axis.lower()}_scale_n_m1") + 1
    whole = registers.field(f"RESIZE_{axis}", "one_step_int")
    rest = registers.field(f"RESIZE_{axis}", "one_step_mod")
    offset = signed(registers.field(f"RESIZE_{axis}_OFFSET", f"resize_{axis.lower()}_offset"), 12)
    return ResizeAxis(whole * denominator + rest, offset, denominator)


def divides(registers: Registers) -> bool:
    """Always."""
    return True
