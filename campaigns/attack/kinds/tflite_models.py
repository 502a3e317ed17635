"""Damaged `.tflite` models: read here, and compiled and described by the command."""

import random
from dataclasses import replace

import numpy as np

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended, Limits
from ethosu_sdk.program import tflite
from tests.tflite_files import Model, Tensor

_TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
_NUMBERS = (-(1 << 31), -129, -2, -1, 0, 1, 2, 3, 7, 64, 255, 70_000, (1 << 31) - 1)
_REALS = (0.0, -0.1, 1e-30, 1e30, float("inf"), float("nan"))
_NAMES = ("", "x" * 300, "a\x1b[31mb", "../../up", "a\nb", "\N{RIGHT-TO-LEFT OVERRIDE}")
_TYPES = ("float32", "uint8", "int16", "int32", "int64", "bool", "string", "resource", "int4")
_KINDS = ("ADD", "SOFTMAX", "RESHAPE", "TRANSPOSE", "WHILE", "CALL_ONCE", "CUSTOM", "ethos-u", "SVDF")


def network() -> Model:
    """Convolution, pooling, a dense layer and softmax: their options, constants, and quantisation by channel."""
    model, generator = Model(), np.random.default_rng(4)
    x = model.input("image", (1, 8, 8, 3), "int8", 0.05, 3)
    scales = generator.uniform(0.01, 0.02, 8)
    weights = model.constant(generator.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8), scales)
    bias = model.constant(generator.integers(-900, 900, 8).astype(np.int32), 0.05 * scales)
    y = model.tensor((1, 8, 8, 8), "int8", 0.2, -128)
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    x = model.operator("CONV_2D", [x, weights, bias], y, fused_activation_function="RELU", **options)
    y = model.tensor((1, 4, 4, 8), "int8", 0.2, -128)
    x = model.operator(
        "MAX_POOL_2D", [x], y, padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2
    )
    y = model.tensor((1, 128), "int8", 0.2, -128)
    x = model.operator("RESHAPE", [x, model.constant(np.array([1, 128], np.int32))], y, new_shape=[1, 128])
    weights = model.constant(generator.integers(-127, 128, (5, 128)).astype(np.int8), 0.01)
    bias = model.constant(generator.integers(-900, 900, 5).astype(np.int32), 0.002)
    x = model.operator("FULLY_CONNECTED", [x, weights, bias], model.tensor((1, 5), "int8", 0.5, 0))
    model.output(
        model.operator("SOFTMAX", [x], model.tensor((1, 5), "int8", 1 / 256, -128), beta=1.0), name="y"
    )
    model.metadata["min_runtime_version"] = b"1.5.0".ljust(16, b"\0")
    return model


def _other_tensor(choice: random.Random, tensor: Tensor) -> Tensor:
    """The tensor with one of its members changed."""
    shape = list(tensor.shape) or [1]
    shape[choice.randrange(len(shape))] = choice.choice(_NUMBERS)
    change = choice.choice(
        (
            {"shape": tuple(shape)},
            {"shape": choice.choice((tensor.shape[1:], (1, *tensor.shape)))},
            {"dtype": choice.choice(_TYPES)},
            {"scale": tuple(choice.choice(_REALS) for _ in tensor.scale)},
            {"scale": (*tensor.scale, 1.0)},
            {"zero_point": tuple(choice.choice(_NUMBERS) for _ in tensor.zero_point)},
            {"axis": choice.choice(_NUMBERS)},
            {"name": choice.choice(_NAMES), "is_variable": choice.random() < 0.5},
            {"buffer": choice.choice((0, 1, 2, 3, 60_000))},
        )
    )
    return replace(tensor, **change)


def _structural(choice: random.Random) -> bytes:
    """The network with up to three of its parts changed, in a file that is whole as FlatBuffers."""
    model = network()
    for _ in range(choice.randint(1, 3)):
        what = choice.randrange(6)
        operator = choice.choice(model.operators)
        if what <= 1:
            index = choice.randrange(len(model.tensors))
            model.tensors[index] = _other_tensor(choice, model.tensors[index])
        elif what == 2:
            indices = choice.choice((operator.inputs, operator.outputs))
            if indices:
                indices[choice.randrange(len(indices))] = choice.choice(
                    (*_NUMBERS, *range(len(model.tensors)))
                )
        elif what == 3:
            name = choice.choice(sorted(operator.options)) if operator.options else ""
            if isinstance(operator.options.get(name), str):
                operator.options[name] = choice.randrange(-128, 128)
            elif isinstance(operator.options.get(name), int):
                operator.options[name] = choice.choice(_NUMBERS)
        elif what == 4:
            operator.kind, operator.options = choice.choice(_KINDS), {}
        else:
            index = choice.randrange(1, len(model.buffers))
            model.buffers[index] = model.buffers[index][: choice.randrange(len(model.buffers[index]) + 1)]
    try:
        return model.to_bytes()
    except TypeError:  # a number that its field cannot hold
        return damage.damaged(choice, network().to_bytes())


def mutated(choice: random.Random) -> bytes:
    """A damaged model: in half of the cases by its parts, else by its bytes."""
    return _structural(choice) if choice.random() < 0.5 else damage.damaged(choice, network().to_bytes())


def _probe(context: Context, choice: random.Random) -> Probe:
    data = mutated(choice)
    return Probe("read", {"given.tflite": data}, lambda _: _read(data))


def _read(data: bytes) -> None:
    model = tflite.parse_tflite(data)
    model.names(model.main.inputs, of="inputs")
    for tensor in model.main.tensors:
        if tensor.data and tensor.dtype:
            assert tensor.array.nbytes == tensor.size_bytes


def _case(context: Context, choice: random.Random) -> Case:
    files = {"given.tflite": mutated(choice)}
    if choice.random() < 0.2:
        return Case("inspect", files, ("inspect", "given.tflite", "--json"), judge=_refused)
    words = ("compile", "given.tflite", "--target", choice.choice(_TARGETS), "-o", "out", "--json")
    return Case("compile", files, words, limits=Limits(seconds=300.0), judge=_refused)


def _refused(ended: Ended, _: object) -> list[str]:
    """A damaged model is bad input; it is a failed build only where Vela fails on what an interpreter runs, and a
    failed verdict where it computes something else."""
    if ended.code in (0, 3, 7) or (ended.code == 5 and "Vela " in ended.err):
        return []
    return [f"exit code {ended.code}: a damaged model is bad input"]


KIND = Kind("tflite", _case, _probe)
