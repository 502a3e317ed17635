"""The methods of a program on their way to the `.pte`: what is decided first; each exported, quantised, compared
with the stage before, lowered, then joined.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.compile import (
    check_references,
    evaluation_outputs,
    finished_program,
    functionalization,
    lowering,
    model_checks,
    model_state,
    quantizing,
    refining,
    stage_comparison,
)
from ethosu_sdk.compile.chain import Chain
from ethosu_sdk.compile.compile_facts import CheckFacts, CompileRequest, EvaluationFacts, method_folder
from ethosu_sdk.compile.evaluation_outputs import EvaluationSubject
from ethosu_sdk.compile.front_ends import loading
from ethosu_sdk.compile.front_ends.loading import NO_FEEDS, DeclaredFeeds, LoadedModel
from ethosu_sdk.compile.graphs import execution, tensor_arrays
from ethosu_sdk.compile.graphs.source_lines import Line, SourceFinder
from ethosu_sdk.compile.layer_values import LayerValues
from ethosu_sdk.compile.model_state import InitialState, one_state
from ethosu_sdk.compile.program_options import CORTEX_M, ProgramOptions
from ethosu_sdk.compile.quantizers import OwnQuantizer
from ethosu_sdk.compile.rewrite import cortex_m, frame, integers
from ethosu_sdk.compile.rewrite.before_quantisation import Goal
from ethosu_sdk.compile.stage_comparison import EagerRun
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.records.common import Delegation
from ethosu_sdk.records.compile import Refinement, Rewrite

if TYPE_CHECKING:
    from ethosu_sdk.compile.front_ends.onnx_model import OnnxModel

Progress = Callable[[str], None]
Tensors = tuple[Any, ...]

_FALLBACK_CORE = "cortex-m55"  # beside an NPU; the passes do the same for a Cortex-M85


class StageClock:
    """Names the running stage to `progress` and adds up the seconds of each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.timings_s: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as the stage `name`, or as more of it: a stage is announced once."""
        if name not in self.timings_s:
            self._progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings_s[name] = self.timings_s.get(name, 0.0) + round(time.monotonic() - start, 3)


@dataclass(frozen=True)
class Plan:
    """A method of a loaded model with everything decided: its inputs, calibration samples and quantisation, and what
    keeps the values of its layers, if they are asked for. Methods of one `root` share their buffers."""

    module: Any
    inputs: Tensors
    calibration: tuple[Tensors, ...]
    calibration_source: str
    quantize: str
    prequantized: bool = False
    lines: Mapping[str, Line] = field(default_factory=dict)
    quantizer: OwnQuantizer | None = None
    layers: LayerValues | None = None
    name: str = ENTRY
    root: int = 0
    shares_state: bool = False  # methods of one root
    feeds: DeclaredFeeds = NO_FEEDS
    origin: OnnxModel | None = None

    @property
    def quantized(self) -> bool:
        """Whether the program computes with quantised values, whoever quantised it."""
        return self.prequantized or self.quantize != "none"


def plans_of(request: CompileRequest, model: LoadedModel) -> list[Plan]:
    """The plan of each method of a loaded model, which is ``forward`` alone unless the model says otherwise.

    InputError or UsageError for what does not fit together.
    """
    if not model.methods:
        return [_plan_of(request, model)]
    _refuse_for_several(request)
    found = []
    for row in model.methods:
        samples = row.calibration
        method = replace(
            model,
            module=row.module,
            example_inputs=row.example_inputs,
            calibration=samples,
            calibration_source="model" if samples else "none",
        )
        try:
            plan = _plan_of(request, method)
            found.append(replace(plan, name=row.name, root=row.root, shares_state=True))
        except InputError as error:
            raise InputError(f"method '{row.name}': {error.message}", error.hint) from error
    return found


def _refuse_for_several(request: CompileRequest) -> None:
    """UsageError or InputError for what is made for one method alone."""
    options = request.options
    for option, given in (
        ("--inputs", options.inputs is not None),
        ("--calibration", bool(options.calibration)),
    ):
        if given:
            raise UsageError(
                f"{option} cannot tell the methods of {request.model} apart",
                "give example inputs and calibration samples in 'methods' of the model's file",
            )
    for what, asked in (
        ("--evaluate", request.evaluation is not None),
        ("--etrecord", options.etrecord),
        ("debug", request.layers is not None),
        ("advise --try", bool(request.lines)),
        ("sweep", request.without_vela),
    ):
        if asked:
            raise UsageError(
                f"{request.model} has several methods, which {what} does not handle",
                "give one of the modules: FILE.py:NAME",
            )


def _plan_of(request: CompileRequest, model: LoadedModel) -> Plan:
    """The plan for a loaded model. InputError or UsageError for what does not fit together."""
    options = request.options
    if model.prequantized:
        _refuse_quantizing(request)
    if model.quantizer is not None:
        model.quantizer.refuse_options(options, prequantized=model.prequantized)
    quantize = options.quantize or model.quantize
    if quantize == "none" and (options.calibration or (options.io != "float" and not model.prequantized)):
        option = "--calibration" if options.calibration else f"--io {options.io}"
        raise UsageError(f"{option} needs a quantised model", "use --quantize int8")
    model_checks.check_module(model.module, request.model)
    inputs = _example_inputs(request, model)
    _check_examples(inputs, quantized=quantize != "none" or model.prequantized)
    # Copies, since a file may give one tensor twice: torch.export would take the two inputs for one.
    inputs = tuple(tensor_arrays.dense_tensor(item).clone() for item in inputs)
    calibration, source = _samples(request, model, inputs) if quantize != "none" else ((), "none")
    for index, sample in enumerate(calibration):
        model_checks.check_values(sample, f"calibration sample {index}: input")
    return Plan(
        module=model.module,
        inputs=inputs,
        calibration=calibration,
        calibration_source=source,
        quantize=quantize,
        prequantized=model.prequantized,
        lines=model.lines,
        quantizer=model.quantizer,
        layers=None if request.layers is None else LayerValues(request.layers, inputs),
        feeds=model.feeds,
        origin=model.origin,
    )


def _refuse_quantizing(request: CompileRequest) -> None:
    """UsageError for options that quantise, which cannot be done to a model that is quantised already."""
    options = request.options
    for option, is_given in (
        ("--quantize", options.quantize not in (None, "none")),
        ("--quantize-per", options.quantize_per != ProgramOptions.quantize_per),
        ("--calibration", bool(options.calibration)),
    ):
        if is_given:
            raise UsageError(
                f"{request.model} is quantised already: {option} would have no effect",
                f"leave {option} out, or give the float model",
            )


def _samples(request: CompileRequest, model: LoadedModel, inputs: Tensors) -> tuple[tuple[Tensors, ...], str]:
    """The calibration samples and where they come from."""
    if request.options.calibration:
        return _calibration(request.options.calibration, inputs), "file"
    if not model.calibration:
        return (inputs,), "example"
    expected = [tensor_arrays.as_numpy(item) for item in inputs]
    for index, sample in enumerate(model.calibration):
        where = f"calibration sample {index} of {request.model}"
        tensor_arrays.check_inputs([tensor_arrays.as_numpy(item) for item in sample], expected, where)
    return model.calibration, model.calibration_source


def _example_inputs(request: CompileRequest, model: LoadedModel) -> Tensors:
    import torch

    examples = model.example_inputs
    if request.options.inputs is None:
        if examples is None:
            raise InputError(
                f"{request.model} has no example inputs",
                "define them beside the model, such as example_inputs = (torch.randn(1, 3, 32, 32),), or give "
                "`compile` --inputs FILE.npz (input0, …)",
            )
        return examples
    given = tensor_arrays.read_inputs(request.options.inputs)
    if examples is None:
        return tuple(torch.from_numpy(array.copy()) for array in given)
    tensor_arrays.check_inputs(
        given, [tensor_arrays.as_numpy(item) for item in examples], request.options.inputs
    )
    return tensor_arrays.tensors_like(given, examples)


def _calibration(files: Sequence[Path], examples: Tensors) -> tuple[Tensors, ...]:
    shapes = [tensor_arrays.as_numpy(item) for item in examples]
    return tuple(
        tensor_arrays.tensors_like(sample, examples)
        for path in files
        for sample in tensor_arrays.calibration_samples(tensor_arrays.read_inputs(path), shapes, path)
    )


def _check_examples(inputs: Tensors, *, quantized: bool) -> None:
    """InputError for example inputs of a kind that no program for the NPU can take."""
    model_checks.check_types(inputs, "example input")
    for index, tensor in enumerate(inputs):
        what = f"example input {index}"
        dtype = str(tensor_arrays.as_numpy(tensor, what).dtype)
        if dtype not in finished_program.PROGRAM_DTYPES:
            raise InputError(f"{what} is {dtype}, which ExecuTorch's runtime does not support")
        if quantized and dtype == "float64":
            raise InputError(
                f"{what} is float64, which cannot be quantised", "give the model and its inputs as float32"
            )
        if 0 in tensor.shape:
            raise InputError(f"{what} has no elements: its shape is {tuple(tensor.shape)}")
    if quantized:
        model_checks.check_values(inputs, "example input")


@dataclass(frozen=True)
class TracedModel:
    """A model as it was executed: its module, what its untouched copy gave, the state that it begins with, the names
    of the buffers that an inference changes; and the `program` that was exported."""

    reference: Any
    eager: EagerRun
    state: InitialState
    written: list[str]
    program: Any


def traced_model(plan: Plan, finder: SourceFinder) -> TracedModel:
    """Execute and export the model of `plan`. InputError for what cannot be exported, or carried by a program."""
    import torch

    module = reference = plan.module
    if isinstance(reference, torch.export.ExportedProgram):
        reference = reference.module(check_guards=False)
    eager = stage_comparison.executed_eagerly(
        reference,
        stage_comparison.chosen_samples(plan.inputs, plan.calibration),
        lambda samples: stage_comparison.longer_samples(samples, plan.calibration),
    )
    if eager.filled is not None:
        module = reference = eager.filled
    written = model_state.carried_state(
        reference, eager.changes, lambda module: execution.call_module(module, plan.inputs), finder
    )
    if not plan.prequantized:
        written = model_state.settled(
            reference, written, lambda module: execution.call_module(module, plan.inputs)
        )
    state = InitialState(reference)
    with functionalization.traced_data():
        program = lowering.export_program(module, plan.inputs, finder)
    if written and not plan.prequantized:
        program = model_state.without_unused_names(program)
    lowering.refuse_training_mode(program, finder)  # with the operators that the user wrote
    model_checks.check_program(program, finder)
    if not eager.repeats and not plan.prequantized:
        raise model_state.hidden_state_refusal(reference, finder)
    return TracedModel(reference, eager, state, written, program)


@dataclass(frozen=True)
class FloatProgram(TracedModel):
    """The same with the `program` without writes, what was rewritten in it for speed, and a warning for the user."""

    rewrites: tuple[Rewrite, ...]
    warning: str | None


def _float_program(plan: Plan, goal: Goal, finder: SourceFinder) -> FloatProgram:
    """Execute and export the model of `plan`, and rewrite the program. InputError as :func:`traced_model` raises."""
    traced = traced_model(plan, finder)
    program = frame.rewrite_exported(
        traced.program if plan.prequantized else functionalization.without_writes(traced.program)
    )
    integers.refuse_wide_integers(program, plan.quantize, plan.inputs, plan.calibration, finder)
    written = list(dict.fromkeys([*traced.written, *program.graph_signature.buffers_to_mutate.values()]))
    warning = model_checks.unrolling_warning(program, finder)
    if plan.quantized:
        model_checks.check_outputs(traced.eager.outputs[0], program, plan.inputs, finder)
    taken: list[frame.Taken] = []
    if plan.prequantized:
        finished = frame.rewrite_quantised(program, plan.inputs)
    else:
        finished, taken = frame.rewrite_float(program, goal, [plan.inputs, *plan.calibration])
    rewrites = _rewrites_of(taken, finder)
    return FloatProgram(traced.reference, traced.eager, traced.state, written, finished, rewrites, warning)


def _rewrites_of(taken: Sequence[frame.Taken], finder: SourceFinder) -> tuple[Rewrite, ...]:
    """What was rewritten for speed, one row for each line of the model."""
    calls: dict[Rewrite, int] = {}
    for row, meta, operator in taken:
        name = operator.removesuffix(".default").replace(".", "::", 1)
        source = finder.find(meta)
        found = Rewrite(name=row.gain, operator=name, calls=1, reason=row.reason, source=source)
        calls[found] = calls.get(found, 0) + 1
    return tuple(msgspec.structs.replace(row, calls=count) for row, count in calls.items())


@dataclass(frozen=True)
class Method:
    """A method as it is: its `plan`, the float program, what compares its stages; the program that is lowered, its
    outputs for the example inputs; what an evaluation found; the buffers that it reads and another method writes; and
    what was done for the accuracy of int8."""

    plan: Plan
    traced: FloatProgram
    chain: Chain | None
    program: Any
    outputs: Tensors
    subject: EvaluationSubject
    evaluation: EvaluationFacts | None = None
    read: tuple[str, ...] = ()
    refinements: tuple[Refinement, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A `method` that was lowered to the program `edge`; its example inputs and outputs in the program's types."""

    method: Method
    edge: Any
    inputs: Tensors
    outputs: Tensors
    references: Any = None
    delegation: tuple[Delegation, ...] = ()

    @property
    def name(self) -> str:
        """The method's name in the program."""
        return self.method.plan.name


def traced_method(request: CompileRequest, plan: Plan, clock: StageClock, finder: SourceFinder) -> Method:
    """Export a method and compare it with the model. InputError for what no program can carry."""
    import torch

    with clock.stage("export"), torch.no_grad(), model_checks.explained(finder):
        options = request.options
        goal = Goal(
            request.target,
            plan.quantize,
            delegate=options.delegate,
            as_written=options.as_written,
            shares_state=plan.shares_state,
        )
        traced = _float_program(plan, goal, finder)
    chain = (
        Chain(traced.eager, finder) if request.check_folder is not None and not plan.prequantized else None
    )
    if chain is not None:
        with clock.stage("compare"):
            chain.graph(traced.program, plan.origin)
    subject = evaluation_outputs.evaluation_subject(
        traced.reference, traced.program, prequantized=plan.prequantized
    )
    return Method(plan, traced, chain, traced.program, traced.eager.outputs[0], subject)


def quantised_methods(
    request: CompileRequest, found: Sequence[Method], spec: Any, clock: StageClock
) -> list[Method]:
    """`found` with their quantised programs, where they are to be quantised."""
    import torch

    if found[0].plan.quantize == "none":
        return list(found)
    refinements: list[Refinement] = []
    refined = refinements if _may_be_refined(request, found, spec) else None
    modules = _quantised_modules(found, spec, request.options.quantize_per == "channel", refined, clock)
    result = []
    for row, module in zip(found, modules, strict=True):
        plan, chain, state = row.plan, row.chain, row.traced.state
        with clock.stage("quantize"), torch.no_grad():
            if chain is not None:
                outputs = chain.example
            else:
                with state.restored(module):
                    outputs = execution.run_eager(module, plan.inputs)
            program = lowering.export_program(module, plan.inputs)
            model_state.keep_shared_state(program, row.read)
            if plan.quantizer is not None:
                program = frame.rewrite_quantised(program, plan.inputs)
        subject = EvaluationSubject(row.traced.reference, module, program)
        quantised = replace(row, program=program, outputs=outputs, subject=subject)
        result.append(replace(quantised, refinements=tuple(refinements)))
    return result


def _may_be_refined(request: CompileRequest, found: Sequence[Method], spec: Any) -> bool:
    """Whether the weights may be changed for the accuracy of int8: the quantiser is the default for an NPU, and no
    sample depends on another."""
    row, is_alone = found[0], len(found) == 1
    is_default = spec is not None and row.plan.quantize == "int8" and row.plan.quantizer is None
    return is_alone and is_default and not row.traced.written and not request.options.as_written


def with_shared_state(found: Sequence[Method]) -> list[Method]:
    """`found`, in which a buffer that one method of a module writes is a state of all that read it.

    InputError for buffers of one name in different modules.
    """
    written = {row.plan.name: row.traced.written for row in found}
    loading.check_method_buffers(written, {row.plan.name: row.plan.root for row in found})
    result = []
    for row in found:
        others = {
            name for other in found if other.plan.root == row.plan.root for name in other.traced.written
        }
        read = model_state.keep_shared_state(row.program, sorted(others - set(row.traced.written)))
        result.append(replace(row, read=tuple(read)))
    return result


def _quantised_modules(
    found: Sequence[Method], spec: Any, per_channel: bool, refined: list[Refinement] | None, clock: StageClock
) -> list[Any]:
    """The quantised module of each method in `found`, whose weights get a scale per channel or tensor, refined where
    there is a list for what was done.

    Methods of one root are calibrated in their order, each with the state that the one before left. What they compute
    alike is quantised alike.
    """
    prepared = [_prepared(row, spec, per_channel, refined, clock) for row in found]
    for root in dict.fromkeys(row.plan.root for row in found):
        rows = [
            (row, module)
            for row, module in zip(found, prepared, strict=True)
            if row.plan.root == root and module is not None
        ]
        quantizing.share_ranges([module for _, module in rows])
        names = frozenset(name for row, _ in rows for name in row.traced.state.names)
        with one_state([module for _, module in rows], names):
            for row, module in rows:
                _calibrate(row, module, clock)
    return [
        _with_branches(row, spec, per_channel, clock)
        if module is None
        else _converted(row, module, refined, clock)
        for row, module in zip(found, prepared, strict=True)
    ]


def _prepared(
    method: Method, spec: Any, per_channel: bool, refined: list[Refinement] | None, clock: StageClock
) -> Any | None:
    """The module of a method with observers; None for one with branches, which are quantised one by one."""
    import torch

    plan = method.plan
    if lowering.has_branches(method.traced.program):
        return None
    with clock.stage("calibrate"), torch.no_grad():
        prepared = quantizing.prepare_module(
            method.traced.program,
            spec,
            plan.quantize,
            per_channel=per_channel,
            adjust=None if plan.quantizer is None else plan.quantizer.applied,
        )
        if refined is not None:
            prepared, done = refining.equalised(prepared, plan.calibration)
            refined += done
        return prepared


def _calibrate(method: Method, prepared: Any, clock: StageClock) -> None:
    import torch

    plan = method.plan
    with clock.stage("calibrate"), torch.no_grad():
        for sample in plan.calibration:
            execution.run_eager(prepared, sample)
        if plan.layers is not None:
            plan.layers.take_float(prepared, method.traced.state)


def _with_branches(method: Method, spec: Any, per_channel: bool, clock: StageClock) -> Any:
    import torch

    plan, chain = method.plan, method.chain
    with clock.stage("calibrate"), torch.no_grad():
        quantized = quantizing.quantize_branches(
            method.traced.program,
            spec,
            plan.quantize,
            plan.calibration,
            per_channel=per_channel,
            adjust=None if plan.quantizer is None else plan.quantizer.applied,
        )
    if chain is not None:
        with clock.stage("compare"), torch.no_grad(), method.traced.state.restored(quantized):
            chain.not_prepared("the branches of torch.cond and while_loop are quantised one by one")
            chain.quantised(quantized, None)
    return quantized


def _converted(method: Method, prepared: Any, refined: list[Refinement] | None, clock: StageClock) -> Any:
    import torch

    chain, state = method.chain, method.traced.state
    with clock.stage("quantize"):
        quantizing.choose_ranges(prepared)
        quantizing.fit_biases(prepared)
    kept = None
    if chain is not None:
        with clock.stage("compare"), torch.no_grad(), state.restored(prepared):
            chain.prepared(prepared)
    if refined is not None:
        with clock.stage("quantize"), torch.no_grad():
            refined += refining.correct_biases(prepared, method.plan.calibration)
            quantizing.fit_biases(prepared)
    if chain is not None:
        kept = copy.deepcopy(prepared)  # conversion changes it
    with clock.stage("quantize"), torch.no_grad():
        quantized = quantizing.convert_module(prepared)
    if chain is not None:
        with clock.stage("compare"), torch.no_grad(), state.restored(quantized):
            chain.quantised(quantized, kept)
    return quantized


def evaluated_method(request: CompileRequest, method: Method, clock: StageClock) -> Method:
    """`method` with what an evaluation finds, if one is asked for."""
    if request.evaluation is None:
        return method
    plan = method.plan
    with clock.stage("evaluate"):
        samples = evaluation_outputs.KnownSamples(
            plan.inputs, method.outputs, plan.calibration, request.options.io == "int8"
        )
        facts = evaluation_outputs.evaluate_eagerly(
            request.evaluation, method.subject, samples, method.traced.state
        )
    return replace(method, evaluation=facts)


def lowered_method(request: CompileRequest, method: Method, spec: Any, clock: StageClock) -> Lowered:
    """`method` lowered for the target, its delegates compiled."""
    options = request.options
    with clock.stage("lower"):
        falls_back = options.fallback == CORTEX_M
        edge = lowering.lower_program(
            method.program,
            spec if options.delegate else None,
            whole=request.core is not None or falls_back,
            etrecord=options.etrecord,
            converts=options.io == "float" and not options.as_written,
        )
        inputs, outputs = method.plan.inputs, method.outputs
        if options.io == "int8":
            edge = lowering.quantize_io(edge, inputs, outputs)
            inputs = lowering.quantized_io_values(edge, "input", inputs)
            outputs = lowering.quantized_io_values(edge, "output", outputs)
        if request.core is not None or falls_back:
            edge = frame.rewrite_on_cpu(edge, request.core or _FALLBACK_CORE)
        else:
            cortex_m.mark_operators(edge)
        has_references = (request.core is not None or falls_back) and not request.without_vela
        references = check_references.reference_module(edge) if has_references else None
        return Lowered(method, edge, inputs, outputs, references)


def with_integer_state(rows: Sequence[Lowered]) -> list[Lowered]:
    """`rows`, the methods of a program, with integers for their state where possible, and their operators counted."""
    frame.rewrite_lowered([row.edge.exported_program() for row in rows])
    return [replace(row, delegation=finished_program.delegation_counts(row.edge)) for row in rows]


def check_facts_of(
    request: CompileRequest, row: Lowered, manager: Any, clock: StageClock
) -> CheckFacts | None:
    """What the check of a method compares with, in its folder; None when no check is asked for."""
    import torch

    if request.check_folder is None:
        return None
    folder = method_folder(request.check_folder, row.name)
    folder.mkdir(exist_ok=True)
    rows = [sample.inputs for sample in row.method.traced.eager.samples]
    with clock.stage("check"), torch.no_grad():
        cpu_calls = [name for name, _ in finished_program.kernel_calls(manager, row.name)]
        facts = check_references.explore_rounding(row.method.program, rows, cpu_calls, folder)
        int8 = request.options.io == "int8"
        given = [
            lowering.quantized_io_values(row.edge, "input", inputs) if int8 else inputs for inputs in rows
        ]
        check_references.save_samples(folder, given)
        if row.references is not None and check_references.references_decide(cpu_calls):
            check_references.save_dialect(folder, row.references, given)
            facts = replace(facts, dialect=True)
    return facts
