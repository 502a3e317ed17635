"""What is decided about a model before it is exported: its inputs, its calibration samples and its quantisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.comparison.evaluation.layers import LayerValues
from ethosu_sdk.aot.facts.compilation import CompileRequest
from ethosu_sdk.aot.graph import arrays, program_facts, tensors
from ethosu_sdk.aot.graph.source_lines import Line
from ethosu_sdk.aot.model import model_checks
from ethosu_sdk.aot.model.declared_feeds import NO_FEEDS, DeclaredFeeds
from ethosu_sdk.aot.model.loading import LoadedModel
from ethosu_sdk.aot.pipeline.quantised_program import Quantising
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.program_options import ProgramOptions

Tensors = tuple[Any, ...]


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
    name: str = pte.ENTRY
    root: int = 0
    feeds: DeclaredFeeds = NO_FEEDS

    def quantising(self, request: CompileRequest) -> Quantising:
        """How it is quantised here."""
        per = request.options.quantize_per
        return Quantising(self.quantize, per, self.quantizer, self.calibration, self.layers)

    @property
    def quantized(self) -> bool:
        """Whether the program computes with quantised values, whoever quantised it."""
        return self.prequantized or self.quantize != "none"


def of_methods(request: CompileRequest, model: LoadedModel) -> list[Plan]:
    """The plan of each method of a loaded model, which is ``forward`` alone unless the model says otherwise.

    InputError or UsageError for what does not fit together.
    """
    if not model.methods:
        return [make(request, model)]
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
            found.append(replace(make(request, method), name=row.name, root=row.root))
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


def make(request: CompileRequest, model: LoadedModel) -> Plan:
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
    inputs = tuple(tensors.dense(item).clone() for item in inputs)
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
    )


def _refuse_quantizing(request: CompileRequest) -> None:
    """UsageError for options that quantise, which cannot be done to a model that is quantised already."""
    options = request.options
    given = {
        "--quantize": options.quantize not in (None, "none"),
        "--quantize-per": options.quantize_per != ProgramOptions.quantize_per,
        "--calibration": bool(options.calibration),
    }
    for option in (name for name, is_given in given.items() if is_given):
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
    expected = [tensors.as_numpy(item) for item in inputs]
    for index, sample in enumerate(model.calibration):
        where = f"calibration sample {index} of {request.model}"
        arrays.check_inputs([tensors.as_numpy(item) for item in sample], expected, where)
    return model.calibration, model.calibration_source


def _example_inputs(request: CompileRequest, model: LoadedModel) -> Tensors:
    import torch

    examples = model.example_inputs
    if request.options.inputs is None:
        if examples is None:
            raise InputError(
                f"{request.model} has no example inputs",
                "define example_inputs beside the model, or give `compile` --inputs FILE.npz (input0, …)",
            )
        return examples
    given = arrays.read_inputs(request.options.inputs)
    if examples is None:
        return tuple(torch.from_numpy(array.copy()) for array in given)
    arrays.check_inputs(given, [tensors.as_numpy(item) for item in examples], request.options.inputs)
    return tensors.like(given, examples)


def _calibration(files: Sequence[Path], examples: Tensors) -> tuple[Tensors, ...]:
    shapes = [tensors.as_numpy(item) for item in examples]
    return tuple(
        tensors.like(sample, examples)
        for path in files
        for sample in arrays.samples(arrays.read_inputs(path), shapes, path)
    )


def _check_examples(inputs: Tensors, *, quantized: bool) -> None:
    """InputError for example inputs of a kind that no program for the NPU can take."""
    model_checks.check_types(inputs, "example input")
    for index, tensor in enumerate(inputs):
        what = f"example input {index}"
        dtype = str(tensors.as_numpy(tensor, what).dtype)
        if dtype not in program_facts.DTYPES:
            raise InputError(f"{what} is {dtype}, which ExecuTorch's runtime does not support")
        if quantized and dtype == "float64":
            raise InputError(
                f"{what} is float64, which cannot be quantised", "give the model and its inputs as float32"
            )
        if 0 in tensor.shape:
            raise InputError(f"{what} has no elements: its shape is {tuple(tensor.shape)}")
    if quantized:
        model_checks.check_values(inputs, "example input")
