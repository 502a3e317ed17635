"""Ethos-U55 and Ethos-U65: what their registers say about an operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethosu_sdk.npu.operation import (
    UNARY,
    UNSCALED,
    Curve,
    ElementwiseMode,
    FeatureMap,
    Kind,
    Lut,
    Mode,
    Operand,
    Output,
    PoolMode,
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

_ROUNDING = {0: Rounding.DOUBLE, 2: Rounding.NATURAL}
_ACCUMULATOR_BITS = {0: 32, 1: 40}
_CURVES = {3: Curve.TANH, 4: Curve.SIGMOID}
_LUT_FUNCTIONS = range(16, 24)
_LUT_INDICES = {1: None, 2: np.dtype("<i2"), 4: np.dtype("<i1")}  # OFM element size → index; None: as the OFM
# When one operand of ADD or SUB has the wide scale, the hardware shifts the other left by this much, per element
# size in bytes. It is in no register: ethos-u-vela 5.1.0 chooses its scales for it, as for TFLite's kernels. These
# shift both by one bit more and then scale by at most one half; double rounding is at their bits.
_PARTNER_SHIFT = {1: 19, 2: 14}

modes: dict[Kind, frozenset[Mode]] = {
    Kind.POOL: frozenset({PoolMode.MAX, PoolMode.AVERAGE, PoolMode.REDUCE_SUM}),
    Kind.ELEMENTWISE: frozenset(mode for mode in ElementwiseMode if mode.value <= ElementwiseMode.SHL.value),
}


def chain(registers: Registers, prefix: str) -> int | None:
    """None: there are no chaining buffers."""
    return None


def _rounding(registers: Registers, prefix: str) -> Rounding:
    return registers.choose(f"{prefix}_PRECISION", "round_mode", _ROUNDING, "rounding mode TRUNCATE")


def output(registers: Registers, kind: Kind, mode: Mode | None, dtype: np.dtype[Any]) -> Output:
    """The output stage."""
    is_global = bool(registers.field("OFM_PRECISION", "scale_mode"))
    is_unscaled = kind in (Kind.ELEMENTWISE, Kind.POOL) and not is_global
    # 32-bit results are not clamped unless a range is named.
    clips = dtype.itemsize <= 2 or registers.field("ACTIVATION", "activation_clip_range")
    return Output(
        scaled=mode not in (*UNSCALED, ElementwiseMode.LRELU) and not is_unscaled,
        scale=scale_of(registers, mode, registers.field("OFM_SCALE", "scale")) if is_global else None,
        shift=registers.field("OFM_SCALE", "shift") if is_global else 0,
        # SHR rounds half up whatever the rounding mode.
        rounding=Rounding.NATURAL if mode is ElementwiseMode.SHR else _rounding(registers, "OFM"),
        clamp=clip_limits(registers, dtype) if clips else None,
        lut=_lut(registers, dtype),
        curve=_curve(registers, dtype),
    )


def _lut(registers: Registers, dtype: np.dtype[Any]) -> Lut | None:
    function = registers.field("ACTIVATION", "activation_function")
    if not function or function in _CURVES:
        return None
    if function not in _LUT_FUNCTIONS or dtype.itemsize not in _LUT_INDICES:
        raise registers.unsupported("ACTIVATION", "activation function")
    address = registers.config.lut_address + 256 * (function - _LUT_FUNCTIONS.start)
    return Lut(address, _LUT_INDICES[dtype.itemsize] or dtype, dtype)


def _curve(registers: Registers, dtype: np.dtype[Any]) -> Curve | None:
    curve = _CURVES.get(registers.field("ACTIVATION", "activation_function"))
    if curve is not None and dtype != np.dtype("<i2"):
        raise registers.unsupported("ACTIVATION", "tanh or sigmoid of other elements than 16-bit ones")
    return curve


def operands(registers: Registers, mode: Mode) -> tuple[Operand, ...]:
    """Operands A and B: IFM and IFM2, unless they are exchanged."""
    first = feature_map(registers, "IFM", None)
    if mode is ElementwiseMode.LRELU:
        scale, shift = (registers.field("OFM_SCALE", name) for name in ("scale", "shift"))
        return (Operand(first, negative=Scaling(scale, shift, _rounding(registers, "OFM"))),)
    if mode in UNARY:
        return (Operand(first),)
    scale_a, scale_b = (
        _scalings(registers, first.dtype)
        if mode in (ElementwiseMode.ADD, ElementwiseMode.SUB)
        else (None, None)
    )
    second = feature_map(registers, "IFM2", None)

    def bit(name: str) -> bool:
        return bool(registers.field("IFM2_BROADCAST", name))

    broadcast = (bit("broadcast_h"), bit("broadcast_w"), bit("broadcast_c"))
    scalar = _scalar(registers, second) if bit("broadcast_constant") else None
    if bit("operand_order"):
        return Operand(second, broadcast, scalar, scale_a), Operand(first, scaling=scale_b)
    return Operand(first, scaling=scale_a), Operand(second, broadcast, scalar, scale_b)


def _scalar(registers: Registers, second: FeatureMap) -> int:
    value = registers.field("IFM2_SCALAR", "scalar")
    return signed(value, 16) if second.dtype.kind == "i" else value


def _scalings(registers: Registers, dtype: np.dtype[Any]) -> tuple[Scaling | None, Scaling | None]:
    """How ADD and SUB scale operands of `dtype`; None for 32 bits, which are taken as they are."""
    if dtype.itemsize not in _PARTNER_SHIFT:
        return None, None
    scale = registers.field("OPA_SCALE", "scale")
    mode = registers.choose("IFM_PRECISION", "scale_mode", {0: "both", 1: "a", 2: "b"}, "operand scale mode")
    if mode == "both":
        return (
            Scaling(scale & 0xFFFF, 0, Rounding.NATURAL),
            Scaling(registers.field("OPB_SCALE", "scale"), 0, Rounding.NATURAL),
        )
    partner = 1 << _PARTNER_SHIFT[dtype.itemsize]
    # Vela writes 0 or the low bits of the other operand's scale, which the hardware does not read in these modes. Any
    # scale but the implied one gives a result that is neither Vela's intention nor known.
    if registers.field("OPB_SCALE", "scale") not in (0, partner & 0xFFFF):
        raise registers.unsupported("OPB_SCALE", "scale of the operand that the hardware only shifts")
    early = _PARTNER_SHIFT[dtype.itemsize] + 1
    wide = Scaling(scale, registers.field("OPA_SCALE", "shift"), _rounding(registers, "IFM"), early)
    shifted = Scaling(partner, 0, Rounding.NATURAL)
    return (wide, shifted) if mode == "a" else (shifted, wide)


def weights(registers: Registers) -> WeightStreams:
    """One stream per core."""
    return WeightStreams(streams_of(registers, ("WEIGHT", "WEIGHT1")[: registers.config.cores], "WEIGHT"))


def scales(registers: Registers, accumulator_bits: int) -> ScaleStreams:
    """One stream per core, of one format for all accumulators."""
    streams = streams_of(registers, ("SCALE", "SCALE1")[: registers.config.cores], "SCALE")
    return ScaleStreams(streams, ScaleFormat.BIAS_40)


def accumulator(registers: Registers, kind: Kind) -> Accumulator:
    """Elementwise operations have no accumulators to choose; all start from 0."""
    bank = registers.field("AB_START", "ab_start")
    if kind is Kind.ELEMENTWISE:
        return Accumulator(_ACCUMULATOR_BITS[0], bank=bank)
    bits = registers.choose("ACC_FORMAT", "acc_format", _ACCUMULATOR_BITS, "accumulator format")
    return Accumulator(bits, bank=bank)


def micro_block(registers: Registers) -> Shape:
    """Fixed by the configuration."""
    return registers.config.micro_block


def divides(registers: Registers) -> bool:
    """With padding, the divisor depends on the place; else it is in OFM_SCALE."""
    return any(registers.field(f"IFM_PAD_{side}", "pad") for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
