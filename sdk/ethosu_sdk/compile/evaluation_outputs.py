"""Eager outputs for an evaluation, before and after quantisation, sample by sample, in the worker process."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.compile import compile_facts as facts, evaluation_data
from ethosu_sdk.compile.evaluation_data import EvaluationData
from ethosu_sdk.compile.graphs import execution, tensor_arrays
from ethosu_sdk.compile.graphs.fx import is_quantize, output_quantisation
from ethosu_sdk.compile.graphs.tensor_arrays import Array
from ethosu_sdk.compile.model_state import InitialState

Tensors = tuple[Any, ...]

_MISSING = {
    facts.FLOAT: "the model came quantised: there is no float model to compare with",
    facts.QUANTISED: "the model is not quantised",
}


@dataclass(frozen=True)
class EvaluationSubject:
    """The model under evaluation: its modules before and after quantisation, each None when it does not exist, and
    the ``ExportedProgram`` that is lowered."""

    float_module: Any
    quantised_module: Any
    program: Any

    @property
    def modules(self) -> dict[str, Any]:
        found = {facts.FLOAT: self.float_module, facts.QUANTISED: self.quantised_module}
        return {name: module for name, module in found.items() if module is not None}


def evaluation_subject(module: Any, program: Any, *, prequantized: bool) -> EvaluationSubject:
    return (
        EvaluationSubject(None, module, program) if prequantized else EvaluationSubject(module, None, program)
    )


@dataclass(frozen=True)
class KnownSamples:
    """Example `inputs` and `outputs`, `calibration` samples, and whether the program takes and gives int8."""

    inputs: Tensors
    outputs: Tensors
    calibration: tuple[Tensors, ...]
    int8_io: bool


def evaluate_eagerly(
    request: facts.EvaluationRequest, model: EvaluationSubject, examples: KnownSamples, state: InitialState
) -> facts.EvaluationFacts:
    """Execute the model on each sample from `state` on and fill the folder. InputError when file or model fails."""
    inputs = [tensor_arrays.as_numpy(item) for item in examples.inputs]
    outputs = [tensor_arrays.as_numpy(item) for item in examples.outputs]
    with evaluation_data.open_data(request.data, inputs) as data:
        data.fit_outputs(outputs)
        with contextlib.ExitStack() as stack:
            for module in model.modules.values():
                stack.enter_context(state.restored(module))
            overlap = _execute(data, model, examples, request.folder)
        for index, labels in data.labels.items():
            np.save(request.folder / f"label{index}.npy", labels)
        return facts.EvaluationFacts(
            samples=data.count,
            missing={name: reason for name, reason in _MISSING.items() if name not in model.modules},
            outputs=tuple(
                facts.EvaluatedOutput(
                    output.shape,
                    output.dtype.name,
                    evaluation_data.classification(output.shape),
                    *output_quantisation(model.program, index),
                )
                for index, output in enumerate(outputs)
            ),
            labels=tuple(data.labels),
            expected=data.expects,
            calibration_overlap=overlap,
        )


def _execute(
    data: EvaluationData, model: EvaluationSubject, examples: KnownSamples, folder: Path
) -> int | None:
    """Spool inputs, expected and eager outputs; how many samples the model was calibrated with, if that is known."""
    calibrated = {
        _digest([tensor_arrays.as_numpy(item) for item in sample]) for sample in examples.calibration
    }
    overlap = 0
    with contextlib.ExitStack() as files:
        spool = _Spool(folder, data.count, files)
        for sample in data.inputs():
            overlap += _digest(sample) in calibrated
            given = tensor_arrays.tensors_like(sample, examples.inputs)
            spool.append("input", _quantised_inputs(model.program, given) if examples.int8_io else given)
            for name, module in model.modules.items():
                spool.append(name, execution.run_eager(module, given))
        for row in data.expected():
            spool.append("expected", row)
    return overlap if len(model.modules) == len(_MISSING) else None  # else it was not calibrated here


def _digest(sample: Sequence[Array]) -> bytes:
    state = hashlib.sha256()
    for array in sample:
        state.update(np.ascontiguousarray(array).data)
    return state.digest()


class _Spool:
    """Arrays that grow by one sample at a time, as ``.npy`` files of a known length."""

    def __init__(self, folder: Path, count: int, stack: contextlib.ExitStack) -> None:
        self._folder = folder
        self._count = count
        self._stack = stack
        self._open: dict[str, tuple[IO[bytes], Array]] = {}

    def append(self, prefix: str, sample: Sequence[Any]) -> None:
        """Add a sample's arrays or tensors as ``PREFIX0``, ``PREFIX1``, …."""
        for index, item in enumerate(sample):
            given = item if isinstance(item, np.ndarray) else tensor_arrays.as_numpy(item)
            array = np.asarray(given, order="C")  # ascontiguousarray would give a 0-d array an axis
            name = f"{prefix}{index}"
            if name not in self._open:
                self._open[name] = self._start(name, array), array
            stream, first = self._open[name]
            if (array.shape, array.dtype) != (first.shape, first.dtype):
                raise BuildError(
                    f"{name} is {array.dtype}{list(array.shape)} for one sample and "
                    f"{first.dtype}{list(first.shape)} for another"
                )
            stream.write(array.data)

    def _start(self, name: str, array: Array) -> IO[bytes]:
        stream = self._stack.enter_context((self._folder / f"{name}.npy").open("wb"))
        header = {"descr": array.dtype.str, "fortran_order": False, "shape": (self._count, *array.shape)}
        np.lib.format.write_array_header_1_0(stream, header)  # type: ignore[no-untyped-call]
        return stream


def _quantised_inputs(program: Any, given: Tensors) -> Tensors:
    """`given` as `program` quantises it, for one that leaves that to its caller."""
    import torch

    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    results = []
    for name, tensor in zip(program.graph_signature.user_inputs, given, strict=True):
        users = [user for user in placeholders[name].users if is_quantize(user)]
        if not users:
            raise InputError(f"the model's input '{name}' is not quantised", "compile it with --io float")
        results.append(torch.ops.quantized_decomposed.quantize_per_tensor.default(tensor, *users[0].args[1:]))
    return tuple(results)
