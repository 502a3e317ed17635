"""From the model as it was written to the exported program that is quantised or lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.comparison.chain import chain_samples, eager_model
from ethosu_sdk.aot.comparison.chain.eager_model import EagerRun
from ethosu_sdk.aot.equivalents import attention_masks, replacing
from ethosu_sdk.aot.graph import execution
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.lowering import exporting
from ethosu_sdk.aot.model import (
    functional,
    hidden_state,
    model_checks,
    model_state,
    shared_buffers,
    unrolling,
)
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.pipeline.plans import Plan
from ethosu_sdk.aot.quantization import prequantized_passes, training_mode, whole_numbers
from ethosu_sdk.aot.repairs import failing_addmm, missing_batch_axis, shifted_arguments
from ethosu_sdk.targets import Target


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


def traced(plan: Plan, target: Target | None, finder: SourceFinder) -> FloatProgram:
    """Execute and export the model of `plan`. InputError for what cannot be exported, or carried by a program."""
    import torch

    module = reference = plan.module
    if isinstance(reference, torch.export.ExportedProgram):
        reference = reference.module(check_guards=False)
    eager = eager_model.execute(
        reference,
        chain_samples.choose(plan.inputs, plan.calibration),
        lambda samples: chain_samples.longer(samples, plan.calibration),
    )
    if eager.filled is not None:
        module = reference = eager.filled
    written = model_state.carried(
        reference, eager.changes, lambda module: execution.call(module, plan.inputs), finder
    )
    if not plan.prequantized:
        written = shared_buffers.settled(
            reference, written, lambda module: execution.call(module, plan.inputs)
        )
    state = InitialState(reference)
    with functional.traced_data():
        program = exporting.export(module, plan.inputs, finder)
    if written and not plan.prequantized:
        program = shared_buffers.without_unused_names(program)
    training_mode.refuse(program, finder)  # with the operators that the user wrote
    model_checks.check_program(program, finder)
    if not eager.repeats and not plan.prequantized:
        raise hidden_state.refusal(reference, finder)
    program = shifted_arguments.repair(program if plan.prequantized else functional.without_writes(program))
    whole_numbers.refuse_wide(program, plan.quantize, plan.inputs, plan.calibration, finder)
    written = list(dict.fromkeys([*written, *program.graph_signature.buffers_to_mutate.values()]))
    warning = unrolling.check(program, finder)
    if plan.quantized:
        model_checks.check_outputs(eager.outputs[0], program, plan.inputs, finder)
    finished = (
        prequantized_passes.complete(program, plan.inputs)
        if plan.prequantized
        else replacing.replace(
            missing_batch_axis.repair(failing_addmm.repair(program)), target, quantized=plan.quantized
        )
    )
    if plan.quantized and not plan.prequantized:
        finished = attention_masks.place(finished, [plan.inputs, *plan.calibration])
    return FloatProgram(reference, eager, state, written, finished, warning)
