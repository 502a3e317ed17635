"""From the exported graph to the quantised one, each compared with the stage before."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.chain.links import Chain
from ethosu_sdk.aot.evaluation.layers import LayerValues
from ethosu_sdk.aot.lowering import steps as lowering
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.quantization import ranges
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.aot.stage_clock import StageClock

Tensors = tuple[Any, ...]


@dataclass(frozen=True)
class Quantising:
    """How a model is quantised: ``int8`` or ``int16``, its weights ``per`` channel or tensor, by which quantiser of
    the user's own, with which samples; and what keeps the values of its layers."""

    quantize: str
    per: str
    quantizer: OwnQuantizer | None
    calibration: tuple[Tensors, ...]
    layers: LayerValues | None


def quantised(
    program: Any, spec: Any, wanted: Quantising, clock: StageClock, chain: Chain | None, state: InitialState
) -> Any:
    """The quantised module of the exported `program`."""
    import torch

    per_channel = wanted.per == "channel"
    adjust = None if wanted.quantizer is None else wanted.quantizer.applied
    with clock.stage("calibrate"), torch.no_grad():
        if lowering.has_branches(program):
            quantized = lowering.quantize_branches(
                program, spec, wanted.quantize, wanted.calibration, per_channel=per_channel, adjust=adjust
            )
            return _judged(quantized, None, clock, chain, state)
        prepared = lowering.prepare(program, spec, wanted.quantize, per_channel=per_channel, adjust=adjust)
        for sample in wanted.calibration:
            lowering.run_eager(prepared, sample)
        if wanted.layers is not None:
            wanted.layers.take_float(prepared)
    with clock.stage("quantize"):
        ranges.choose(prepared)
        ranges.fit_biases(prepared)
    kept = None
    if chain is not None:
        with clock.stage("compare"), torch.no_grad(), state.restored(prepared):
            chain.prepared(prepared)
            kept = copy.deepcopy(prepared)  # conversion changes it
    with clock.stage("quantize"), torch.no_grad():
        quantized = lowering.convert(prepared)
    return _judged(quantized, kept, clock, chain, state)


def _judged(
    quantized: Any, prepared: Any, clock: StageClock, chain: Chain | None, state: InitialState
) -> Any:
    """The `quantized` module, once the chain holds."""
    import torch

    if chain is not None:
        with clock.stage("compare"), torch.no_grad(), state.restored(quantized):
            if prepared is None:
                chain.not_prepared("the branches of torch.cond and while_loop are quantised one by one")
            chain.quantised(quantized, prepared)
    return quantized
