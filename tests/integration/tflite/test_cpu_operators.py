"""Operators that Vela leaves to the CPU: each as a program of its own in ExecuTorch's runtime, with the firmware's
kernels, beside the interpreters of others; and a network that the NPU does in several parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import cache
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.compile.tflite import kernels, reference, stages as tflite
from ethosu_sdk.compile.tflite.vela import VelaOutput, compile_network, vela_flags
from ethosu_sdk.program.tflite import read_tflite
from ethosu_sdk.simulate import host_runtime
from tests.tflite_files import Model
from tests.tflite_networks import Network

Array = NDArray[Any]
Build = Callable[[Model], None]

TARGET = parse_target("ethos-u55-128", None, None)
assert isinstance(TARGET, Target)
RANDOM = np.random.default_rng(11)


def named(model: Model) -> str:
    return f"x{len(model.inputs)}"


def unary(kind: str, shape: tuple[int, ...], out: tuple[int, ...], *constants: Any, **options: Any) -> Build:
    """An operator that moves data: input and output have one scale."""

    def build(model: Model) -> None:
        x = model.input(named(model), shape, "int8", 0.05, -3)
        y = model.tensor(out, "int8", 0.05, -3)
        rows = [model.constant(np.array(row, np.int32)) for row in constants]
        model.operator(kind, [x, *rows], y, **options)
        model.output(y)

    return build


def computed(kind: str, scale: float, zero: int, out_scale: float, out_zero: int, **options: Any) -> Build:
    def build(model: Model) -> None:
        x = model.input(named(model), (4, 64), "int8", scale, zero)
        y = model.tensor((4, 64), "int8", out_scale, out_zero)
        model.operator(kind, [x], y, **options)
        model.output(y)

    return build


def binary(
    kind: str, left: tuple[int, ...], right: tuple[int, ...], out_scale: float, **options: Any
) -> Build:
    def build(model: Model) -> None:
        a = model.input(named(model), left, "int8", 0.043, -7)
        b = model.input(named(model), right, "int8", 0.027, 12)
        y = model.tensor(np.broadcast_shapes(left, right), "int8", out_scale, 9)
        model.operator(kind, [a, b], y, **options)
        model.output(y)

    return build


def dense(channels: bool, activation: str) -> Build:
    def build(model: Model) -> None:
        x = model.input(named(model), (5, 32), "int8", 0.04, 11)
        scales = list(RANDOM.uniform(0.003, 0.02, 16)) if channels else [0.011]
        w = model.constant(RANDOM.integers(-127, 128, (16, 32)).astype(np.int8), scales, axis=0)
        bias = RANDOM.integers(-4000, 4000, 16).astype(np.int32)
        b = model.constant(bias, [0.04 * scale for scale in scales], axis=0)
        y = model.tensor((5, 16), "int8", 0.3, -20)
        model.operator("FULLY_CONNECTED", [x, w, b], y, fused_activation_function=activation)
        model.output(y)

    return build


def matmul(**options: Any) -> Build:
    def build(model: Model) -> None:
        shapes = [(2, 3, 6, 8), (2, 3, 8, 5)]
        if options.get("adj_x"):
            shapes[0] = (2, 3, 8, 6)
        if options.get("adj_y"):
            shapes[1] = (2, 3, 5, 8)
        a, b = (model.input(named(model), shape, "int8", 0.03, 4 - i) for i, shape in enumerate(shapes))
        y = model.tensor((2, 3, 6, 5), "int8", 0.11, -6)
        model.operator("BATCH_MATMUL", [a, b], y, **options)
        model.output(y)

    return build


def concatenated(model: Model) -> None:
    parts = [model.input(named(model), (2, 3 + i, 4), "int8", 0.05, -3) for i in range(3)]
    y = model.tensor((2, 12, 4), "int8", 0.05, -3)
    model.operator("CONCATENATION", parts, y, axis=1, fused_activation_function="NONE")
    model.output(y)


def sliced(begin: list[int], end: list[int], steps: list[int], out: tuple[int, ...], **masks: int) -> Build:
    return unary("STRIDED_SLICE", (3, 8, 5), out, begin, end, steps, **masks)


EXACT = {
    "transpose": unary("TRANSPOSE", (2, 3, 4, 5), (4, 2, 5, 3), [2, 0, 3, 1]),
    "reshape": unary("RESHAPE", (2, 3, 4), (6, 4), [6, 4]),
    "squeeze": unary("SQUEEZE", (1, 3, 1, 4), (3, 4)),
    "pad": unary("PAD", (2, 3, 4), (3, 7, 5), [[1, 0], [2, 2], [0, 1]]),
    "slice": unary("SLICE", (3, 8, 5), (2, 3, 5), [1, 2, 0], [2, 3, -1]),
    "strided_slice": sliced([0, 1, 0], [3, 8, 5], [2, 3, 1], (2, 3, 5)),
    "strided_slice_of_one": sliced(
        [-1, -4, 0], [0, -1, 0], [1, 1, 1], (3, 5), shrink_axis_mask=1, end_mask=4
    ),
    "concatenation": concatenated,
    "mul": binary("MUL", (2, 5, 16), (2, 5, 16), 0.017),
    "mul_broadcast_relu6": binary("MUL", (2, 5, 16), (1, 1, 16), 0.03, fused_activation_function="RELU6"),
    "add": binary("ADD", (2, 5, 16), (2, 5, 16), 0.031),
    "add_relu": binary("ADD", (2, 5, 16), (1, 1, 1), 0.05, fused_activation_function="RELU"),
    "sub": binary("SUB", (2, 5, 16), (2, 5, 16), 0.029),
    "dense": dense(channels=False, activation="NONE"),
    "dense_of_channels": dense(channels=True, activation="RELU"),
    "batch_matmul": matmul(),
    "batch_matmul_turned": matmul(adj_x=True, adj_y=True),
    "quantize": computed("QUANTIZE", 0.05, 3, 0.021, -17),
}
# Where TensorFlow Lite computes in other steps, one step of the output is the most that they are apart.
NEAR = {
    "softmax": computed("SOFTMAX", 0.08, 5, 1 / 256, -128, beta=1.0),
    "logistic": computed("LOGISTIC", 0.06, -11, 1 / 256, -128),
    "tanh": computed("TANH", 0.03, 7, 1 / 128, 0),
    "leaky_relu": computed("LEAKY_RELU", 0.05, 3, 0.04, -9, alpha=0.1),
    "hard_swish": computed("HARD_SWISH", 0.05, 3, 0.04, -40),
}


def outputs_of(path: Path, made: VelaOutput, samples: list[list[Array]], tmp_path: Path) -> list[list[Array]]:
    program = tflite.build_program(
        read_tflite(path), made.network, made.reasons, TARGET, vela_flags(TARGET, None, ())
    )
    pte = tmp_path / "made.pte"
    pte.write_bytes(program.data)
    runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
    with host_runtime.open_pte(runner, pte, host_runtime.NpuModel(), method="forward") as runtime:
        return [runtime.run(inputs) for inputs in samples]


def differences(path: Path, samples: list[list[Array]], outputs: list[list[Array]]) -> list[dict[str, int]]:
    """For each output by interpreter, the largest difference."""
    found: list[dict[str, int]] = [{} for _ in outputs[0]]
    network = read_tflite(path)
    real = kernels.real_values(network, network)
    for reading in reference.readings(path, samples, real):
        name = f"{reading.facts.interpreter} {reading.facts.rounding}"
        for made, wanted in zip(outputs, reading.outputs, strict=True) if reading.outputs else ():
            for row, a, b in zip(found, made, wanted, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                row[name] = max(row.get(name, 0), int(np.abs(a.astype(np.int64) - b).max(initial=0)))
    assert all(found), "no interpreter runs it"
    return found


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """All operators side by side in one program, as if Vela had left everything to the CPU."""
    folder, model = tmp_path_factory.mktemp("operators"), Model()
    for build in (EXACT | NEAR).values():
        build(model)
    path = model.write(folder / "operators.tflite")
    network = read_tflite(path)
    samples = tflite._samples(network, None)
    outputs = outputs_of(path, VelaOutput(network, b"", b"", b"", {}, ""), samples, folder)
    assert all(len(np.unique(row)) > 3 for row in outputs[0])
    return dict(zip(EXACT | NEAR, differences(path, samples, outputs), strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_an_operator_gives_the_bits_of_an_interpreter(name: str, apart: dict[str, dict[str, int]]) -> None:
    assert min(apart[name].values()) == 0


@pytest.mark.parametrize("name", NEAR)
def test_an_operator_is_at_most_a_step_from_each_interpreter(
    name: str, apart: dict[str, dict[str, int]]
) -> None:
    assert max(apart[name].values()) <= 1
    assert min(apart[name].values()) == 0  # of LiteRT with the operator in floats


def test_each_operator_of_the_table_is_tried() -> None:
    tried = {name.partition("_of_")[0].upper() for name in (*EXACT, *NEAR)}
    alike = {
        "EXP",
        "EXPAND_DIMS",
        "PACK",
        "PADV2",
        "RELU",
        "RELU6",
        "ELU",
        "SHAPE",
    }  # the same code as others
    elsewhere = {
        "DEQUANTIZE",
        "FULLY_CONNECTED",
        "CALL_ONCE",
        "VAR_HANDLE",
        "READ_VARIABLE",
        "ASSIGN_VARIABLE",
    }
    assert set(kernels.ON_CPU) <= tried | alike | elsewhere


def test_a_network_in_several_parts(tmp_path: Path) -> None:
    """Operators in the middle, forced to the CPU: the parts for the NPU share their weights in the program."""
    net = Network(seed=5)
    x = net.conv(net.input("image", 1, 8, 8, 8), 16, (3, 3))
    y = net.add("TRANSPOSE", [x, np.array([0, 2, 1, 3], np.int32)], (1, 8, 8, 16))
    z = net.conv(y, 8, (3, 3))
    net.output(net.conv(net.binary("MUL", z, z), 4, (1, 1)), "scores")
    path = net.model().write(tmp_path / "parts.tflite")
    flags = [*vela_flags(TARGET, None, ()), "--ignore-ops=TRANSPOSE,MUL"]
    made = compile_network(read_tflite(path), flags, None)
    assert [row.name for row in made.network.main.operators] == [
        "ethos-u",
        "TRANSPOSE",
        "ethos-u",
        "MUL",
        "ethos-u",
    ]
    samples = tflite._samples(read_tflite(path), None)
    (apart,) = differences(path, samples, outputs_of(path, made, samples, tmp_path))
    assert min(apart.values()) == 0
    weights = len(made.network.main.tensors[made.network.main.operators[0].inputs[1]].data)
    assert (tmp_path / "made.pte").stat().st_size < 4096 + 2 * weights + 8192


def test_a_variable_keeps_its_value(tmp_path: Path) -> None:
    """A sum over all inferences so far, on the NPU between reading and assigning; zero at first."""
    model = Model()
    x = model.input("x", (1, 4, 4, 8), "int8", 0.05, 0)
    handle = model.operator("VAR_HANDLE", [], model.tensor((), "resource"), shared_name="total")
    total = model.operator("READ_VARIABLE", [handle], model.tensor((1, 4, 4, 8), "int8", 0.05, 0))
    options: dict[str, Any] = {"fused_activation_function": "NONE"}
    y = model.operator("ADD", [total, x], model.tensor((1, 4, 4, 8), "int8", 0.05, 0), **options)
    model.operator("ASSIGN_VARIABLE", [handle, y], [])
    model.output(y)
    path = model.write(tmp_path / "total.tflite")
    made = compile_network(read_tflite(path), vela_flags(TARGET, None, ()), None)
    assert "ethos-u" in [row.name for row in made.network.main.operators]
    samples = [[np.full((1, 4, 4, 8), 10 * number, np.int8)] for number in (1, 2, 3)]
    outputs = outputs_of(path, made, samples, tmp_path)
    assert [int(row[0].reshape(-1)[0]) for row in outputs] == [10, 30, 60]
    assert min(differences(path, samples, outputs)[0].values()) == 0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (computed("SIN", 0.05, 3, 0.04, -9), "SIN, 'tensor_1'.* no kernel for it"),
        (binary("MUL", (2, 4), (2, 4), 0.03, fused_activation_function="TANH"), "the fused activation TANH"),
        (sliced([2, 7, 4], [-4, -9, -6], [-1, -1, -1], (3, 8, 5)), "steps are not positive"),
    ],
)
def test_what_no_kernel_does_is_refused(build: Build, words: str, tmp_path: Path) -> None:
    model = Model()
    build(model)
    path = model.write(tmp_path / "one.tflite")
    reasons = {read_tflite(path).main.output_tensors[0].name: "Vela's reason"}
    made = VelaOutput(read_tflite(path), b"", b"", b"", reasons, "")
    with pytest.raises(InputError, match=words) as caught:
        outputs_of(path, made, [], tmp_path)
    assert "operator 0" in caught.value.message
    assert "(Vela's reason)" in caught.value.message
