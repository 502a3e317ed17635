"""One compilation from end to end, inside the worker process: the order of steps, their timing and the
files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import npz, records
from ethosu_sdk.aot import arrays, artefacts, lowering, model_loading, program_facts, vela_capture
from ethosu_sdk.aot.api import CompileOutput, CompileRequest
from ethosu_sdk.aot.model_loading import LoadedModel
from ethosu_sdk.aot.model_spec import ModelSpec, parse_model_spec
from ethosu_sdk.errors import InputError, UsageError

Progress = Callable[[str], None]
Tensors = tuple[Any, ...]


class StageClock:
    """Names the running stage to `progress` and adds up the seconds of each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.timings_s: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as the stage `name` of ``api.STAGES``."""
        self._progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings_s[name] = self.timings_s.get(name, 0.0) + round(time.monotonic() - start, 3)


@dataclass(frozen=True)
class _Plan:
    """A loaded model with everything decided: its inputs, calibration samples and quantisation."""

    module: Any
    inputs: Tensors
    calibration: tuple[Tensors, ...]
    calibration_source: str
    quantize: str


@dataclass(frozen=True)
class _Lowered:
    """The finished program manager, and the inputs and outputs in the program's own types."""

    manager: Any
    inputs: Tensors
    outputs: Tensors


def run(request: CompileRequest, progress: Progress) -> CompileOutput:
    """Compile, write every file into the (existing) output folder and return the facts.

    Raises InputError, UsageError or BuildError; a failed run leaves the files of an earlier one as they were.
    """
    clock = StageClock(progress)
    with clock.stage("import"):
        _import_tools()
    spec = parse_model_spec(request.model)
    with clock.stage("model"):
        plan = _plan(request, model_loading.load(spec))
    with vela_capture.captured() as captures:
        lowered = _lower(request, plan, clock)
    with clock.stage("write"):
        delegates = artefacts.write_delegates(request.out_dir, lowered.manager, captures)
        io = request.out_dir / f"{spec.name}.io.npz"
        content = arrays.io_arrays(
            [_numpy(item) for item in lowered.inputs], [_numpy(item) for item in lowered.outputs]
        )
        npz.write_npz(io, content)
        pte = request.out_dir / f"{spec.name}.pte"
        data = bytes(lowered.manager.buffer)
        records.write_bytes(pte, data)
    operators = program_facts.cpu_operators(lowered.manager)
    return CompileOutput(
        name=spec.name,
        pte=pte,
        pte_sha256=records.sha256_bytes(data),
        pte_bytes=len(data),
        io=io,
        log=request.out_dir / artefacts.LOG_NAME,
        model_source=request.model,
        model_sha256=_source_digest(spec),
        target=request.target,
        quantize=plan.quantize,
        io_type=request.io,
        calibration_source=plan.calibration_source,
        calibration_samples=len(plan.calibration),
        methods=program_facts.methods(lowered.manager),
        inputs=program_facts.inputs(lowered.manager),
        outputs=program_facts.outputs(lowered.manager),
        cpu_operators=operators,
        delegates=delegates,
        versions=program_facts.versions(),
        timings_s=clock.timings_s,
        warnings=_warnings(request, plan, len(delegates)),
    )


def _import_tools() -> None:
    """Import what takes seconds, so that the first stage shows it; fix the number of threads, because
    floating-point sums, and with them calibration, depend on it."""
    import executorch.backends.arm.ethosu
    import executorch.exir
    import torch
    import torchao.quantization.pt2e.quantize_pt2e

    del executorch, torchao
    torch.set_num_threads(1)


def _plan(request: CompileRequest, model: LoadedModel) -> _Plan:
    quantize = request.quantize or model.quantize
    if quantize == "none" and (request.calibration or request.io != "float"):
        option = "--calibration" if request.calibration else f"--io {request.io}"
        raise UsageError(f"{option} needs a quantised model", "choose --quantize int8")
    inputs = _example_inputs(request, model)
    if quantize == "none":
        return _Plan(model.module, inputs, (), "none", quantize)
    if request.calibration:
        return _Plan(model.module, inputs, _calibration(request.calibration, inputs), "file", quantize)
    if model.calibration:
        return _Plan(model.module, inputs, model.calibration, model.calibration_source, quantize)
    return _Plan(model.module, inputs, (inputs,), "example", quantize)


def _example_inputs(request: CompileRequest, model: LoadedModel) -> Tensors:
    import torch

    examples = model.example_inputs
    if request.inputs is None:
        if examples is None:
            raise InputError(
                f"{request.model} brings no example inputs",
                "give them with --inputs FILE.npz (input0, …), or define example_inputs beside the model",
            )
        return examples
    given = arrays.read_inputs(request.inputs)
    if examples is None:
        return tuple(torch.from_numpy(array.copy()) for array in given)
    arrays.check_inputs(given, [_numpy(item) for item in examples], request.inputs)
    return _like(given, examples)


def _calibration(files: Sequence[Path], examples: Tensors) -> tuple[Tensors, ...]:
    shapes = [_numpy(item) for item in examples]
    return tuple(
        _like(sample, examples)
        for path in files
        for sample in arrays.samples(arrays.read_inputs(path), shapes, path)
    )


def _like(values: Sequence[arrays.Array], examples: Tensors) -> Tensors:
    """`values` as tensors that lie in memory as `examples` do: the memory format is part of the program."""
    import torch

    return tuple(
        torch.empty_like(example).copy_(torch.from_numpy(value.copy()))
        for value, example in zip(values, examples, strict=True)
    )


def _lower(request: CompileRequest, plan: _Plan, clock: StageClock) -> _Lowered:
    import torch

    spec = lowering.compile_spec(request.target)
    with clock.stage("export"), torch.no_grad():
        reference = plan.module
        if isinstance(reference, torch.export.ExportedProgram):
            reference = reference.module(check_guards=False)
        outputs = lowering.run_eager(reference, plan.inputs)
        program = lowering.export(plan.module, plan.inputs)
    if plan.quantize != "none":
        with clock.stage("calibrate"), torch.no_grad():
            prepared = lowering.prepare(program, spec, plan.quantize)
            for sample in plan.calibration:
                lowering.run_eager(prepared, sample)
        with clock.stage("quantize"), torch.no_grad():
            quantized = lowering.convert(prepared)
            outputs = lowering.run_eager(quantized, plan.inputs)
            program = lowering.export(quantized, plan.inputs)
    with clock.stage("lower"):
        edge = lowering.lower(program, spec if request.delegate else None)
        inputs = plan.inputs
        if request.io == "int8":
            edge = lowering.quantize_io(edge, len(inputs), len(outputs))
            inputs = lowering.quantized_io_values(edge, "input", inputs)
            outputs = lowering.quantized_io_values(edge, "output", outputs)
        return _Lowered(lowering.to_executorch(edge), inputs, outputs)


def _numpy(tensor: Any) -> arrays.Array:
    try:
        array: arrays.Array = tensor.detach().cpu().numpy()
    except TypeError as error:
        raise InputError(
            f"a tensor of {tensor.dtype} cannot be stored in an .npz", "use a type that NumPy has"
        ) from error
    return array


def _source_digest(spec: ModelSpec) -> str:
    if spec.path is not None:
        return records.sha256_file(spec.path)
    from ethosu_sdk.aot import zoo

    return records.sha256_file(zoo.source(str(spec.entry)))


def _warnings(request: CompileRequest, plan: _Plan, delegates: int) -> tuple[str, ...]:
    found = []
    if request.delegate and not delegates:
        found.append("Nothing was delegated to the NPU: every operator runs on the CPU.")
    if plan.calibration_source == "example":
        found.append("Calibrated on the example inputs alone: quantisation ranges are guesses.")
    return tuple(found)
