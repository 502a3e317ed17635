"""Compares each layer of a quantised graph with the operators of the prepared graph, on the same inputs.

The prepared graph is executed with the values of the quantised one: at each observer the two are compared, and the
quantised value goes on. A layer's error is then its own: rounding to its steps, and what its range cuts off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk.aot.graph import interpreting, tensors
from ethosu_sdk.aot.graph.conversions import is_dequantize, is_quantize

Tensors = tuple[Any, ...]
Constants = dict[tuple[str, int, int], Any]  # by observer, place in memory and number of writes to it

_FACTOR = 2.0  # of a step, for the rms of errors whose rounding alone is 0.29 of a step
_FLOAT_STEP = 2.0**-18  # of the largest value: float32 arithmetic of two graphs
_SCALES_AGREE = 1e-3
# What observers without a range, or of a kind that nobody foresaw, raise when they are asked for one.
_NOT_KNOWN = (AttributeError, TypeError, RuntimeError, AssertionError, NotImplementedError)


@dataclass(frozen=True)
class Step:
    """How the quantised graph stores a value: scale, zero point, least and greatest code."""

    scale: float
    zero_point: int
    low: int
    high: int

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value that can be stored."""
        return (self.low - self.zero_point) * self.scale, (self.high - self.zero_point) * self.scale


@dataclass(frozen=True)
class Layer:
    """A layer on one sample: its `node` in the prepared graph; rms of its own `error`, of its `signal`, and the
    `limit` that its step and the range of its values explain; what is wrong with its scale, in words."""

    node: Any
    error: float
    signal: float
    limit: float
    wrong_scale: str = ""

    @property
    def explained(self) -> bool:
        """Whether step and range explain the error."""
        return not self.wrong_scale and self.error <= self.limit

    @property
    def sqnr_db(self) -> float:
        """Signal to own noise; infinite without noise."""
        if not self.error:
            return math.inf
        return 20.0 * math.log10(self.signal / self.error) if self.signal else -math.inf


@dataclass(frozen=True)
class Stored:
    """The values of a quantised graph for one sample: its outputs, and by name of each quantised node what is stored,
    dequantised, and how."""

    outputs: Tensors
    values: dict[str, list[tuple[Step, Any]]]


def stored(quantized: Any, inputs: Tensors) -> Stored:
    """Execute a quantised graph and keep what it stores."""
    import torch

    values: dict[str, list[tuple[Step, Any]]] = {}

    def note(node: Any, result: Any) -> None:
        if is_quantize(node):
            scale, zero_point, low, high = node.args[1:5]
            step = Step(float(scale), int(zero_point), int(low), int(high))
            value = (result.to(torch.float32) - step.zero_point) * step.scale
            values.setdefault(_origin(node.args[0]).name, []).append((step, value))

    return Stored(interpreting.run(quantized, inputs, note=note), values)


def _origin(node: Any) -> Any:
    """The node whose value `node` holds, even if it was observed or stored several times on the way: an operator
    may want its input in other steps than those that the one before chose."""
    while node.op == "call_module" or is_quantize(node) or is_dequantize(node):
        node = node.args[0]
    return node


def judge(prepared: Any, inputs: Tensors, known: Stored, constants: Constants) -> list[Layer]:
    """The layers of the sample whose values are `known`, in the order of execution. The graph keeps its state.
    `constants` keeps quantised weights from sample to sample."""
    found: list[Layer] = []

    def observe(node: Any, observer: Any, value: Any) -> Any:
        source = _origin(node.args[0])
        own = _step_of(observer)
        if not value.is_floating_point():
            return value.clone()
        if source.name not in known.values:
            key = (node.name, value.data_ptr(), value._version)
            if key not in constants:
                constants[key] = _rounded(observer, value)  # a constant, which conversion has stored as such
            return constants[key]
        step, given = _nearest(known.values[source.name], own)
        if given.shape != value.shape:
            return value.clone()
        if source.op == "call_function":
            # What is stored a second time is stored so for the operator that reads it.
            at = source if node.args[0] is source else next(iter(node.users), source)
            found.append(_layer(at, value, given, step, observer))
        return given.to(value.dtype)

    with interpreting.state_kept(prepared):
        interpreting.run(prepared, inputs, observe=observe)
    return found


def _layer(node: Any, value: Any, given: Any, step: Step, observer: Any) -> Layer:
    own = _step_of(observer)
    wanted, got = (tensors.as_numpy(item).astype(np.float64) for item in (value, given))
    finite = np.isfinite(wanted)
    wanted, got = wanted[finite], got[finite]
    size = max(wanted.size, 1)
    spread = float(wanted.max(initial=0.0) - wanted.min(initial=0.0)) / max(step.high - step.low, 1)
    # What calibration saw and cut off, it weighed against the steps of all other values. A range that was fixed
    # beforehand has no such excuse.
    kept = wanted.clip(*step.limits) if _is_calibrated(observer) else wanted
    error = got - kept
    scale = step.scale if own is None else own.scale
    limit = _FACTOR * max(scale, spread) + _FLOAT_STEP * float(np.abs(wanted).max(initial=0.0))
    return Layer(
        node,
        math.sqrt(float(error @ error) / size),
        math.sqrt(float(wanted @ wanted) / size),
        limit,
        _wrong_scale(step, own),
    )


def _is_calibrated(observer: Any) -> bool:
    """Whether an observer chose its range by the values that it saw."""
    return hasattr(observer, "min_val") and hasattr(observer, "max_val")


def _wrong_scale(step: Step, own: Step | None) -> str:
    if own is None or abs(step.scale - own.scale) <= _SCALES_AGREE * own.scale:
        return ""
    return f"it is stored in steps of {step.scale:.4g}, but calibration chose {own.scale:.4g}"


def _nearest(rows: Sequence[tuple[Step, Any]], own: Step | None) -> tuple[Step, Any]:
    """The stored form that matches an observer best, among those of one value."""
    if own is None:
        return rows[0]
    return min(rows, key=lambda row: (abs(row[0].scale - own.scale), abs(row[0].zero_point - own.zero_point)))


def _step_of(observer: Any) -> Step | None:
    """The quantisation of one scale that an observer asks for; None for one that has none."""
    import torch

    try:
        scale, zero_point = observer.calculate_qparams()[:2]
        if not isinstance(scale, torch.Tensor) or scale.numel() != 1:
            return None
        low, high = int(observer.quant_min), int(observer.quant_max)
        return Step(float(scale), int(zero_point), low, high)
    except _NOT_KNOWN:
        return None


def _rounded(observer: Any, value: Any) -> Any:
    """A constant as its observer quantises it; a copy where that is not known."""
    try:
        return _fake_quantised(observer, value)
    except _NOT_KNOWN:
        return value.clone()


def _fake_quantised(observer: Any, value: Any) -> Any:
    import torch

    scale, zero_point = observer.calculate_qparams()[:2]
    low, high = int(observer.quant_min), int(observer.quant_max)
    if scale.numel() == 1:
        return torch.fake_quantize_per_tensor_affine(value, float(scale), int(zero_point), low, high)
    axis = int(getattr(observer, "ch_axis", 0))
    points = zero_point.to(torch.int32)
    return torch.fake_quantize_per_channel_affine(value, scale.float(), points, axis, low, high)
