"""The methods of one program on their way to the `.pte`: each exported, quantised and lowered, then joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk.aot.comparison.chain.links import Chain
from ethosu_sdk.aot.comparison.check import dialect, rounding
from ethosu_sdk.aot.comparison.evaluation import eager_outputs
from ethosu_sdk.aot.comparison.evaluation.eager_outputs import Subject
from ethosu_sdk.aot.facts.check import CheckFacts, method_folder
from ethosu_sdk.aot.facts.compilation import CompileRequest, DelegationCount
from ethosu_sdk.aot.facts.evaluation import EvaluationFacts
from ethosu_sdk.aot.graph import execution, program_facts
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.lowering import exporting, fallback, integer_state, to_pte
from ethosu_sdk.aot.model import methods, model_checks, shared_state
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.pipeline import float_program, quantised_program
from ethosu_sdk.aot.pipeline.float_program import FloatProgram
from ethosu_sdk.aot.pipeline.plans import Plan
from ethosu_sdk.aot.pipeline.stage_clock import StageClock
from ethosu_sdk.aot.quantization import prequantized_passes
from ethosu_sdk.program_options import CORTEX_M

Tensors = tuple[Any, ...]

_FALLBACK_CORE = "cortex-m55"  # beside an NPU; the passes do the same for a Cortex-M85


@dataclass(frozen=True)
class Method:
    """A method as it is: its `plan`, the float program, what compares its stages; the program that is lowered, its
    outputs for the example inputs; what an evaluation found; and the buffers that it reads and another method writes.
    """

    plan: Plan
    traced: FloatProgram
    chain: Chain | None
    program: Any
    outputs: Tensors
    subject: Subject
    evaluation: EvaluationFacts | None = None
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A `method` that was lowered to the program `edge`; its example inputs and outputs in the program's types."""

    method: Method
    edge: Any
    inputs: Tensors
    outputs: Tensors
    references: Any = None
    delegation: tuple[DelegationCount, ...] = ()

    @property
    def name(self) -> str:
        """The method's name in the program."""
        return self.method.plan.name


def trace(request: CompileRequest, plan: Plan, clock: StageClock, finder: SourceFinder) -> Method:
    """Export a method and compare it with the model. The errors of :func:`float_program.traced`."""
    import torch

    with clock.stage("export"), torch.no_grad(), model_checks.explained(finder):
        traced = float_program.traced(plan, request.target, finder)
    chain = (
        Chain(traced.eager, finder) if request.check_folder is not None and not plan.prequantized else None
    )
    if chain is not None:
        with clock.stage("compare"):
            chain.graph(traced.program)
    subject = eager_outputs.subject(traced.reference, traced.program, prequantized=plan.prequantized)
    return Method(plan, traced, chain, traced.program, traced.eager.outputs[0], subject)


def quantised(request: CompileRequest, found: Sequence[Method], spec: Any, clock: StageClock) -> list[Method]:
    """`found` with their quantised programs, where they are to be quantised."""
    import torch

    if found[0].plan.quantize == "none":
        return list(found)
    subjects = [
        quantised_program.Subject(
            row.traced.program, row.plan.quantising(request), row.chain, row.traced.state, row.plan.root
        )
        for row in found
    ]
    result = []
    for row, module in zip(found, quantised_program.quantised(subjects, spec, clock), strict=True):
        plan, chain, state = row.plan, row.chain, row.traced.state
        with clock.stage("quantize"), torch.no_grad():
            outputs = chain.example if chain is not None else _executed(module, plan.inputs, state)
            program = exporting.export(module, plan.inputs)
            shared_state.keep(program, row.read)
            if plan.quantizer is not None:
                program = prequantized_passes.complete(program, plan.inputs)
        subject = Subject(row.traced.reference, module, program)
        result.append(replace(row, program=program, outputs=outputs, subject=subject))
    return result


def with_shared_state(found: Sequence[Method]) -> list[Method]:
    """`found`, in which a buffer that one method of a module writes is a state of all that read it.

    InputError for buffers of one name in different modules.
    """
    written = {row.plan.name: row.traced.written for row in found}
    methods.check_names(written, {row.plan.name: row.plan.root for row in found})
    result = []
    for row in found:
        others = {
            name for other in found if other.plan.root == row.plan.root for name in other.traced.written
        }
        read = shared_state.keep(row.program, sorted(others - set(row.traced.written)))
        result.append(replace(row, read=tuple(read)))
    return result


def _executed(quantized: Any, inputs: Tensors, state: InitialState) -> Tensors:
    with state.restored(quantized):
        return execution.run_eager(quantized, inputs)


def evaluated(request: CompileRequest, method: Method, clock: StageClock) -> Method:
    """`method` with what an evaluation finds, if one is asked for."""
    if request.evaluation is None:
        return method
    plan = method.plan
    with clock.stage("evaluate"):
        samples = eager_outputs.Samples(
            plan.inputs, method.outputs, plan.calibration, request.options.io == "int8"
        )
        facts = eager_outputs.evaluate(request.evaluation, method.subject, samples, method.traced.state)
    return replace(method, evaluation=facts)


def lowered(request: CompileRequest, method: Method, spec: Any, clock: StageClock) -> Lowered:
    """`method` lowered for the target, its delegates compiled."""
    options = request.options
    with clock.stage("lower"):
        falls_back = options.fallback == CORTEX_M
        edge = to_pte.lower(
            method.program,
            spec if options.delegate else None,
            whole=request.core is not None or falls_back,
            etrecord=options.etrecord,
        )
        inputs, outputs = method.plan.inputs, method.outputs
        if options.io == "int8":
            edge = to_pte.quantize_io(edge, inputs, outputs)
            inputs = to_pte.quantized_io_values(edge, "input", inputs)
            outputs = to_pte.quantized_io_values(edge, "output", outputs)
        if request.core is not None or falls_back:
            edge = fallback.replace(edge, request.core or _FALLBACK_CORE)
        else:
            fallback.mark(edge)
        has_references = (request.core is not None or falls_back) and not request.without_vela
        references = dialect.module(edge) if has_references else None
        return Lowered(method, edge, inputs, outputs, references)


def with_integer_state(rows: Sequence[Lowered]) -> list[Lowered]:
    """`rows`, the methods of a program, with integers for their state where possible, and their operators counted."""
    integer_state.keep([row.edge.exported_program() for row in rows])
    return [replace(row, delegation=program_facts.delegation(row.edge)) for row in rows]


def checked(request: CompileRequest, row: Lowered, manager: Any, clock: StageClock) -> CheckFacts | None:
    """What the check of a method compares with, in its folder; None when no check is asked for."""
    import torch

    if request.check_folder is None:
        return None
    folder = method_folder(request.check_folder, row.name)
    folder.mkdir(exist_ok=True)
    rows = [sample.inputs for sample in row.method.traced.eager.samples]
    with clock.stage("check"), torch.no_grad():
        cpu_calls = [name for name, _ in program_facts.kernel_calls(manager, row.name)]
        facts = rounding.explore(row.method.program, rows, cpu_calls, folder)
        int8 = request.options.io == "int8"
        given = [to_pte.quantized_io_values(row.edge, "input", inputs) if int8 else inputs for inputs in rows]
        rounding.save_samples(folder, given)
        if row.references is not None and dialect.decides(cpu_calls):
            rounding.save_dialect(folder, row.references, given)
            facts = replace(facts, dialect=True)
    return facts
