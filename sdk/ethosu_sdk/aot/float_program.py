"""From the model as it was written to the exported program that is quantised or lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.aot.api import CompileRequest
from ethosu_sdk.aot.chain import eager as eager_model, samples as chain_samples
from ethosu_sdk.aot.chain.eager import EagerRun
from ethosu_sdk.aot.equivalents import replacing
from ethosu_sdk.aot.evaluation.layers import LayerValues
from ethosu_sdk.aot.lowering import steps as lowering
from ethosu_sdk.aot.model import checks as model_checks, functional, state as model_state, unrolling
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.model.source_lines import SourceFinder
from ethosu_sdk.aot.quantising import Quantising
from ethosu_sdk.aot.quantization import prequantized_passes, training_mode, whole_numbers
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.aot.repairs import added_batches, constant_likes, plain_addmm
from ethosu_sdk.targets import Target

Tensors = tuple[Any, ...]


@dataclass(frozen=True)
class Plan:
    """A loaded model with everything decided: its inputs, calibration samples and quantisation, and what keeps the
    values of its layers, if they are asked for."""

    module: Any
    inputs: Tensors
    calibration: tuple[Tensors, ...]
    calibration_source: str
    quantize: str
    prequantized: bool = False
    lines: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    quantizer: OwnQuantizer | None = None
    layers: LayerValues | None = None

    def quantising(self, request: CompileRequest) -> Quantising:
        """How it is quantised here."""
        per = request.options.quantize_per
        return Quantising(self.quantize, per, self.quantizer, self.calibration, self.layers)

    @property
    def quantized(self) -> bool:
        """Whether the program computes with quantised values, whoever quantised it."""
        return self.prequantized or self.quantize != "none"


@dataclass(frozen=True)
class FloatProgram:
    """The float model: its module, what its untouched copy gave, the state that it begins with, the names of the
    buffers that an inference changes, the exported program without writes, and a warning for the user."""

    reference: Any
    eager: EagerRun
    state: InitialState
    written: list[str]
    program: Any
    warning: str | None


def traced(plan: Plan, target: Target, finder: SourceFinder) -> FloatProgram:
    """Execute and export the model of `plan`. InputError for what cannot be exported, or carried by a program."""
    import torch

    module = reference = plan.module
    if isinstance(reference, torch.export.ExportedProgram):
        reference = reference.module(check_guards=False)
    eager = eager_model.execute(reference, chain_samples.choose(plan.inputs, plan.calibration))
    if eager.filled is not None:
        module = reference = eager.filled
    written = model_state.carried(
        reference, eager.changes, lambda module: lowering.call(module, plan.inputs), finder
    )
    state = InitialState(reference)
    with functional.traced_data():
        program = lowering.export(module, plan.inputs, finder)
    training_mode.refuse(program, finder)  # with the operators that the user wrote
    model_checks.check_program(program, finder)
    program = constant_likes.fold(program if plan.prequantized else functional.without_writes(program))
    whole_numbers.refuse_wide(program, plan.quantize, plan.inputs, plan.calibration, finder)
    warning = unrolling.check(program, finder)
    if plan.quantized:
        model_checks.check_outputs(eager.outputs[0], program, plan.inputs, finder)
    finished = (
        prequantized_passes.complete(program, plan.inputs)
        if plan.prequantized
        else replacing.replace(
            added_batches.add(plain_addmm.split(program)), target, quantized=plan.quantized
        )
    )
    return FloatProgram(reference, eager, state, written, finished, warning)
