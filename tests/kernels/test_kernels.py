"""The firmware's kernels against ExecuTorch's own runtime, bit for bit, on this machine.

The oracle is the runtime of the executorch wheel (its portable, optimised and quantized kernels); where that is
none, the test says what is compared instead.
"""

import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk import pte
from ethosu_sdk.firmware_build.kernels import manifest
from tests.integration.cli import sdk
from tests.kernels.cases.programs import lowered_group
from tests.kernels.interpreter.cases import (
    QUANTIZATIONS,
    exact_cases,
    floats,
    integers,
    number_cases,
    special_floats,
)
from tests.kernels.interpreter.lowered import Lowered, Pairs, by_case
from tests.kernels.interpreter.models import (
    Array,
    Case,
    HostRuntime,
    edge_program,
    lower,
    lowering,
    stored_inputs,
)
from tests.kernels.interpreter.runner import MANIFEST, Interpreter, build_runner, same_bits

pytestmark = pytest.mark.torch

EXACT = exact_cases()
NUMBERS = number_cases()


@pytest.fixture(scope="module")
def interpreter(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(build_runner(shared_folder / "pte-host-runner"), tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def exact() -> Lowered:
    return lowered_group("exact")


@pytest.fixture(scope="module")
def numbers() -> Lowered:
    return lowered_group("numbers")


@pytest.fixture(scope="module")
def exact_pairs(exact: Lowered, interpreter: Interpreter) -> Pairs:
    return exact.pairs(interpreter)


@pytest.fixture(scope="module")
def number_pairs(numbers: Lowered, interpreter: Interpreter) -> Pairs:
    return numbers.pairs(interpreter)


def _check(pairs: list[tuple[Array, Array]]) -> None:
    for found, expected in pairs:
        assert found.shape == expected.shape
        assert same_bits(found, expected), numpy.argwhere(found != expected)[:5]


def test_the_oracle_can_disagree() -> None:
    """The negative control of every comparison below: one bit, one sign of zero, one shape."""
    one = numpy.ones(3, numpy.float32)
    assert same_bits(one, one.copy())
    assert not same_bits(one, numpy.nextafter(one, numpy.float32(2)))
    assert not same_bits(numpy.zeros(3, numpy.float32), -numpy.zeros(3, numpy.float32))
    assert not same_bits(one, one.reshape(3, 1))
    assert not same_bits(one, one.astype(numpy.float64))
    assert same_bits(numpy.array([numpy.nan]), -numpy.array([numpy.nan]))
    assert not same_bits(numpy.array([numpy.nan]), numpy.array([0.0]))


@pytest.mark.parametrize("name", EXACT)
def test_equals_host_runtime(exact_pairs: Pairs, name: str) -> None:
    _check(exact_pairs[name])


@pytest.mark.parametrize("name", NUMBERS)
def test_operators_with_numbers_equal_host_runtime(number_pairs: Pairs, name: str) -> None:
    _check(number_pairs[name])


@pytest.mark.qemu
@pytest.mark.toolchain
def test_equals_host_runtime_on_cortex_m55(exact: Lowered, tmp_path: Path) -> None:
    """The same program as firmware on QEMU: newlib's expf and the M55's code, against the same oracle."""
    (tmp_path / "kernels.pte").write_bytes(exact.program)
    inputs = [array for case in EXACT.values() for array in case.inputs]
    numpy.savez(tmp_path / "inputs.npz", **{f"input{i}": array for i, array in enumerate(inputs)})
    outcome = sdk("run", "kernels.pte", "--inputs", "inputs.npz", "-o", "out", "-q", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    with numpy.load(tmp_path / "out" / "outputs.npz") as outputs:
        found = [outputs[f"output{i}"] for i in range(len(exact.expected))]
    pairs = by_case(EXACT, found, exact.expected)
    unlike = [name for name in EXACT if not all(same_bits(*pair) for pair in pairs[name])]
    assert unlike == []


def test_every_kernel_is_where_the_manifest_says() -> None:
    for kernel in manifest(MANIFEST).values():
        source = (MANIFEST.parent / "operators" / kernel.source).read_text(encoding="utf-8")
        assert re.search(rf"^Status {kernel.function}\(", source, re.MULTILINE), kernel


def _run_alone(
    interpreter: Interpreter, case: Case, *, dim_order: bool = True
) -> tuple[list[Array], list[Array], str]:
    """A program of one case: the firmware's outputs, the host runtime's, and the operators that it calls."""
    program = lower({"forward": [case]}, dim_order=dim_order)
    run = interpreter.run(program, "forward", stored_inputs([case]))
    assert run.status == "ok", run.reason
    called = " ".join(pte.parse(program).plan().called_operators())
    return list(run.outputs), HostRuntime(program).run("forward", [case]), called


@pytest.mark.parametrize(
    ("operator", "function", "inputs", "divisor"),
    [
        ("aten::div.out", lambda torch, a: a / 2.7, (floats(200, scale=50),), 2.7),
        ("aten::div.out", lambda torch, a: a / 3, (integers("int32", 200),), 3),
        (
            "aten::div.out",
            lambda torch, a, b: a / b,
            (floats(200, scale=50), numpy.array(1.7, numpy.float32)),
            1.7,
        ),
        ("aten::div.Scalar_out", lambda torch, a: torch.ops.aten.div.Scalar(a, 2.7), (floats(200),), 2.7),
    ],
)
def test_division_by_a_lone_number(
    interpreter: Interpreter, operator: str, function: Any, inputs: tuple[Array, ...], divisor: float
) -> None:
    """IEEE division, where the wheel's optimised kernel multiplies by the reciprocal: within one unit of it."""
    found, expected, called = _run_alone(
        interpreter, Case(function, inputs), dim_order="Scalar" not in operator
    )
    assert operator in called
    assert same_bits(found[0], inputs[0].astype(numpy.float32) / numpy.float32(divisor))
    numpy.testing.assert_array_max_ulp(found[0], expected[0], maxulp=1)


def test_matrix_product_sums_in_index_order(interpreter: Interpreter) -> None:
    """aten::mm as the wheel's portable addmm with an addend of 0: its optimised mm sums in another order."""
    zero, left, right = numpy.zeros((7, 11), numpy.float32), floats(7, 133), floats(133, 11, seed=1)
    found, other_order, called = _run_alone(
        interpreter, Case(lambda torch, a, b: torch.mm(a, b), (left, right))
    )
    assert called == "aten::mm.out"
    _, expected, _ = _run_alone(
        interpreter, Case(lambda torch, z, a, b: torch.addmm(z, a, b), (zero, left, right))
    )
    assert same_bits(found[0], expected[0])
    numpy.testing.assert_allclose(found[0], other_order[0], rtol=2e-5, atol=2e-5)


def _round_trip(scale: float, zero_point: int) -> Any:
    arguments = (scale, zero_point, -128, 127)

    def function(torch: Any, x: Any) -> Any:
        twins = torch.ops.quantized_decomposed
        quantized = twins.quantize_per_tensor(x, *arguments, torch.int8)
        return quantized, twins.dequantize_per_tensor(quantized, *arguments, torch.int8)

    return function


@pytest.mark.parametrize(("scale", "zero_point"), QUANTIZATIONS)
def test_cortex_m_operators_equal_their_twins(
    interpreter: Interpreter, scale: float, zero_point: int
) -> None:
    """cortex_m::{quantize,dequantize}_per_tensor, which the host runtime lacks, against quantized_decomposed's.

    That they are twins is said by executorch.backends.cortex_m.ops.operators, which implements them by those.
    """
    case = Case(_round_trip(scale, zero_point), (special_floats(300, scale),))
    _, expected, _ = _run_alone(interpreter, case)
    with lowering():
        from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass

        edge = edge_program({"forward": [case]}).transform([ReplaceQuantNodesPass()])
        program = bytes(edge.to_executorch().buffer)
    called = pte.parse(program).plan().called_operators()
    assert set(called) == {"cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out"}
    run = interpreter.run(program, "forward", case.inputs)
    assert run.status == "ok", run.reason
    assert all(same_bits(found, wanted) for found, wanted in zip(run.outputs, expected, strict=True))
