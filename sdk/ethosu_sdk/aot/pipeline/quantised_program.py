"""From the exported graph to the quantised one, each compared with the stage before."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.comparison.chain.links import Chain
from ethosu_sdk.aot.comparison.evaluation.layers import LayerValues
from ethosu_sdk.aot.graph import execution
from ethosu_sdk.aot.lowering import exporting, quantizing
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.pipeline.stage_clock import StageClock
from ethosu_sdk.aot.quantization import ranges
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer

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
        if exporting.has_branches(program):
            quantized = quantizing.quantize_branches(
                program, spec, wanted.quantize, wanted.calibration, per_channel=per_channel, adjust=adjust
            )
            return _judged(quantized, None, clock, chain, state)
        prepared = quantizing.prepare(program, spec, wanted.quantize, per_channel=per_channel, adjust=adjust)
        for sample in wanted.calibration:
            execution.run_eager(prepared, sample)
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
        quantized = quantizing.convert(prepared)
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
