"""From the exported graph to the quantised one, each compared with the stage before."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.comparison.chain.links import Chain
from ethosu_sdk.aot.comparison.evaluation.layers import LayerValues
from ethosu_sdk.aot.graph import execution
from ethosu_sdk.aot.lowering import exporting, quantizing
from ethosu_sdk.aot.model.initial_state import InitialState, one_state
from ethosu_sdk.aot.pipeline.stage_clock import StageClock
from ethosu_sdk.aot.quantization import ranges, shared_ranges
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


@dataclass(frozen=True)
class Subject:
    """The exported `program` of a method, how it is quantised, what compares it, and the state that it begins with.
    Methods of one `root` share their buffers."""

    program: Any
    wanted: Quantising
    chain: Chain | None
    state: InitialState
    root: int = 0


def quantised(subjects: Sequence[Subject], spec: Any, clock: StageClock) -> list[Any]:
    """The quantised module of each of the `subjects`.

    Methods of one root are calibrated in their order, each with the state that the one before left. What they compute
    alike is quantised alike.
    """
    branching = [exporting.has_branches(row.program) for row in subjects]
    prepared = [
        None if branches else _prepared(row, spec, clock)
        for row, branches in zip(subjects, branching, strict=True)
    ]
    for root in dict.fromkeys(row.root for row in subjects):
        rows = [
            (row, module)
            for row, module in zip(subjects, prepared, strict=True)
            if row.root == root and module is not None
        ]
        shared_ranges.share([module for _, module in rows])
        names = frozenset(name for row, _ in rows for name in row.state.names)
        with one_state([module for _, module in rows], names):
            for row, module in rows:
                _calibrate(row, module, clock)
    return [
        _of_branches(row, spec, clock) if module is None else _converted(row, module, clock)
        for row, module in zip(subjects, prepared, strict=True)
    ]


def _prepared(subject: Subject, spec: Any, clock: StageClock) -> Any:
    import torch

    wanted = subject.wanted
    with clock.stage("calibrate"), torch.no_grad():
        return quantizing.prepare(
            subject.program,
            spec,
            wanted.quantize,
            per_channel=wanted.per == "channel",
            adjust=None if wanted.quantizer is None else wanted.quantizer.applied,
        )


def _calibrate(subject: Subject, prepared: Any, clock: StageClock) -> None:
    import torch

    with clock.stage("calibrate"), torch.no_grad():
        for sample in subject.wanted.calibration:
            execution.run_eager(prepared, sample)
        if subject.wanted.layers is not None:
            subject.wanted.layers.take_float(prepared, subject.state)


def _of_branches(subject: Subject, spec: Any, clock: StageClock) -> Any:
    import torch

    wanted = subject.wanted
    with clock.stage("calibrate"), torch.no_grad():
        quantized = quantizing.quantize_branches(
            subject.program,
            spec,
            wanted.quantize,
            wanted.calibration,
            per_channel=wanted.per == "channel",
            adjust=None if wanted.quantizer is None else wanted.quantizer.applied,
        )
    return _judged(quantized, None, clock, subject.chain, subject.state)


def _converted(subject: Subject, prepared: Any, clock: StageClock) -> Any:
    import torch

    chain, state = subject.chain, subject.state
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
