"""What a `.tflite` computes by interpreters that are not the SDK's: tflite-micro and LiteRT's reference kernels.

Each interpreter runs in a process of its own, this module as a program: a file that makes it crash, hang or fill the
memory is a reading that failed, with a sentence. State is kept over the samples, which run in a row.

Vela computes as tflite-micro does. LiteRT differs from both in one operator: its FULLY_CONNECTED rounds the real
product of sum and scale once; theirs twice, after 31 bits and after the rest of the shift. So there is a third
reading: LiteRT on the same model with each FULLY_CONNECTED written as a convolution of 1 x 1, which LiteRT rounds
twice.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import proc, tools
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.compile.compile_facts import ReadingFacts

Array = npt.NDArray[Any]
Samples = Sequence[Sequence[Array]]

_INSTALL = {"tflite-micro": "pip install tflite-micro", "ai-edge-litert": "pip install 'ethosu-sdk[tflite]'"}
MICRO, TWICE, LITERT = "micro", "twice", "litert"
_PACKAGES = {MICRO: "tflite-micro", TWICE: "ai-edge-litert", LITERT: "ai-edge-litert"}
_WORDS = {
    MICRO: "tflite-micro {}",
    TWICE: "LiteRT {}, reference kernels",
    LITERT: "LiteRT {}, reference kernels",
}
_ROUNDING = {TWICE: "FULLY_CONNECTED rounds twice, after 31 bits and at the end"}
_NONE: Mapping[int, str] = MappingProxyType({})
_REAL = "real values are rounded in {}"
_MODULE = "ethosu_sdk.compile.tflite.reference"
_REFUSED = 3  # the exit status of this program for a model that its interpreter does not run
_MEMORY_BYTES = 8 << 30
_ARENA_BYTES = 512 << 20  # of tflite-micro; memory that is not touched costs nothing


@dataclass(frozen=True)
class Reading:
    """An interpreter, and its outputs in the model's order for each sample; none where the facts have a reason."""

    facts: ReadingFacts
    outputs: tuple[tuple[Array, ...], ...] = ()


def readings(
    model: Path, samples: Samples, real: Mapping[int, str] = _NONE, *, timeout_s: float = 300.0
) -> tuple[Reading, ...]:
    """What each interpreter says of the model at `model` for `samples` in a row: the one that Vela follows first.

    The LiteRT that rounds twice is asked only where it can say something new: LiteRT runs the model, and tflite-micro
    does not or says something else. `real` are tensors, by index and name, that the program has as real values,
    rounded once; there a LiteRT that does so too is asked, between DEQUANTIZE and QUANTIZE.
    """
    micro = _reading(MICRO, model, samples, timeout_s)
    plain = _reading(LITERT, model, samples, timeout_s)
    rows = [micro, plain]
    if plain.outputs and not same(micro.outputs, plain.outputs):
        rows.insert(1, _reading(TWICE, model, samples, timeout_s))
    if plain.outputs and real:
        rows.append(_reading(TWICE, model, samples, timeout_s, real))
    return tuple(rows)


def same(left: Samples, right: Samples) -> bool:
    """Whether two readings have the same bits everywhere."""
    return len(left) == len(right) and all(
        len(a) == len(b) and all(one.tobytes() == other.tobytes() for one, other in zip(a, b, strict=True))
        for a, b in zip(left, right, strict=True)
    )


def _reading(
    kind: str, model: Path, samples: Samples, timeout_s: float, real: Mapping[int, str] = _NONE
) -> Reading:
    package = _PACKAGES[kind]
    version = tools.package_version(package)
    facts = ReadingFacts(_WORDS[kind].format(version or "").strip(), _ROUNDING.get(kind, ""))
    if real:
        facts = replace(facts, rounding=f"{facts.rounding}; {_REAL.format(', '.join(real.values()))}")
    if version is None:
        return Reading(replace(facts, reason=f"{package} is not installed: {_INSTALL[package]}"))
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-tflite-") as folder:
        given, made = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        np.savez(given, *(array for row in samples for array in row))
        words = [kind, str(model), str(len(samples)), str(given), str(made), *map(str, real)]
        try:
            result = proc.run(
                [sys.executable, "-P", "-m", _MODULE, *words],
                timeout_s=timeout_s,
                error=SimulationError,
                check=False,
            )
        except SimulationError:
            return Reading(replace(facts, reason=f"it did not end within {timeout_s:g} s"))
        if result.returncode or not made.is_file():
            return Reading(replace(facts, reason=_failure(result)))
        arrays = _stored(made)
    each = len(arrays) // len(samples)
    return Reading(facts, tuple(tuple(arrays[n * each : (n + 1) * each]) for n in range(len(samples))))


def _failure(result: proc.ProcResult) -> str:
    if result.returncode == _REFUSED:
        lines = [line for line in result.output.splitlines() if line.strip() and not line.startswith("INFO:")]
        return f"it does not run the model: {'; '.join(lines[-3:])}"
    if result.returncode < 0:
        return f"it crashed ({signal.Signals(-result.returncode).name})"
    return f"it ended with status {result.returncode}: {proc.tail(result.output, 1)}"


def _stored(path: Path) -> list[Array]:
    with np.load(path, allow_pickle=False) as archive:
        return [archive[f"arr_{index}"] for index in range(len(archive.files))]


# The program.


def _main(kind: str, model: str, count: str, given: str, made: str, *real: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    arrays = _stored(Path(given))
    each = len(arrays) // int(count)
    try:
        content = Path(model).read_bytes()
        execute = (
            _micro(content)
            if kind == MICRO
            else _litert(_rewritten(content, {int(index) for index in real}) if kind == TWICE else content)
        )
        outputs = [row for n in range(int(count)) for row in execute(arrays[n * each : (n + 1) * each])]
    except (RuntimeError, ValueError, MemoryError) as error:
        print(" ".join(str(error).split()) or type(error).__name__)
        sys.exit(_REFUSED)
    np.savez(made, *outputs)


def _micro(content: bytes) -> Callable[[Sequence[Array]], list[Array]]:
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=_ARENA_BYTES)

    def execute(inputs: Sequence[Array]) -> list[Array]:
        for index, array in enumerate(inputs):
            interpreter.set_input(array, index)
        interpreter.invoke()
        return [interpreter.get_output(index).copy() for index in range(count)]

    count = _outputs_of(content)
    return execute


def _outputs_of(content: bytes) -> int:
    from ethosu_sdk.program.tflite import parse_tflite

    return len(parse_tflite(content).main.outputs)


def _litert(content: bytes) -> Callable[[Sequence[Array]], list[Array]]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()

    def execute(arrays: Sequence[Array]) -> list[Array]:
        for row, array in zip(inputs, arrays, strict=True):
            interpreter.set_tensor(row["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(row["index"]) for row in outputs]

    return execute


def _rewritten(content: bytes, real: Collection[int]) -> bytes:
    """The model with its FULLY_CONNECTED operators of constant weights written as convolutions of 1 x 1, and with
    floats in the operators that make the tensors `real`."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    codes = [max(row.builtinCode, row.deprecatedBuiltinCode) for row in model.operatorCodes]
    kinds = schema.BuiltinOperator
    for code in (kinds.CONV_2D, kinds.RESHAPE, kinds.DEQUANTIZE, kinds.QUANTIZE):
        made = schema.OperatorCodeT()
        made.builtinCode = made.deprecatedBuiltinCode = code
        made.version = 1
        model.operatorCodes.append(made)
    operators = []
    for operator in graph.operators:
        if len(operator.outputs) and operator.outputs[0] in real:
            operators += _in_floats(schema, graph, operator, len(codes) + 2)
            continue
        is_dense = codes[operator.opcodeIndex] == kinds.FULLY_CONNECTED
        data = model.buffers[graph.tensors[operator.inputs[1]].buffer].data if is_dense else None
        operators += [operator] if data is None else _as_convolution(schema, graph, operator, len(codes))
    graph.operators = operators
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _as_convolution(schema: Any, graph: Any, operator: Any, code: int) -> list[Any]:
    """A FULLY_CONNECTED as RESHAPE, CONV_2D and RESHAPE; `code` is that of CONV_2D, RESHAPE's the next."""
    units, depth = (int(size) for size in graph.tensors[operator.inputs[1]].shape)

    def shaped(index: int, *shape: int) -> int:
        one, other = schema.TensorT(), graph.tensors[index]
        one.type, one.quantization, one.name = other.type, other.quantization, other.name
        one.buffer, one.shape = other.buffer, np.array(shape, np.int32)
        if one.quantization is not None:
            one.quantization.quantizedDimension = 0
        graph.tensors.append(one)
        return len(graph.tensors) - 1

    def reshape(source: int, target: int) -> Any:
        options = schema.ReshapeOptionsT()
        options.newShape = graph.tensors[target].shape
        return _operator(schema, code + 1, [source], target, schema.BuiltinOptions.ReshapeOptions, options)

    rows = int(np.prod(graph.tensors[operator.inputs[0]].shape)) // depth
    source = shaped(operator.inputs[0], rows, 1, 1, depth)
    target = shaped(operator.outputs[0], rows, 1, 1, units)
    convolution = schema.Conv2DOptionsT()
    convolution.strideW = convolution.strideH = 1
    convolution.fusedActivationFunction = operator.builtinOptions.fusedActivationFunction
    inputs = [source, shaped(operator.inputs[1], units, 1, 1, depth), *operator.inputs[2:]]
    return [
        reshape(operator.inputs[0], source),
        _operator(schema, code, inputs, target, schema.BuiltinOptions.Conv2DOptions, convolution),
        reshape(target, operator.outputs[0]),
    ]


def _in_floats(schema: Any, graph: Any, operator: Any, code: int) -> list[Any]:
    """An operator between DEQUANTIZE, whose `code` it is, and QUANTIZE, whose code is the next."""
    floats = []
    for index in (operator.inputs[0], operator.outputs[0]):
        one, other = schema.TensorT(), graph.tensors[index]
        one.type, one.shape, one.name = schema.TensorType.FLOAT32, other.shape, other.name + b" in floats"
        graph.tensors.append(one)
        floats.append(len(graph.tensors) - 1)
    before = _operator(schema, code, operator.inputs[:1], floats[0])
    after = _operator(schema, code + 1, floats[1:], operator.outputs[0])
    operator.inputs = np.array([floats[0], *operator.inputs[1:]], np.int32)
    operator.outputs = np.array(floats[1:], np.int32)
    return [before, operator, after]


def _operator(
    schema: Any, code: int, inputs: Sequence[int], output: int, union: int = 0, options: Any = None
) -> Any:
    made = schema.OperatorT()
    made.opcodeIndex, made.builtinOptionsType, made.builtinOptions = code, union, options
    made.inputs, made.outputs = np.array(inputs, np.int32), np.array([output], np.int32)
    return made


if __name__ == "__main__":
    _main(*sys.argv[1:])
