"""The firmware's kernels against ExecuTorch's own runtime, bit for bit, on this machine.

The oracle is the runtime of the executorch wheel (its portable, optimised and quantized kernels); where that is
none, the test says what is compared instead.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest

from ethosu_sdk import pte
from tests.interpreter_cases import QUANTIZATIONS, exact_cases, floats, integers, special_floats
from tests.interpreter_models import Array, Case, HostRuntime, lower
from tests.interpreter_runner import FIRMWARE, Interpreter, build_runner, same_bits

pytestmark = pytest.mark.torch

EXACT = exact_cases()


@dataclass(frozen=True)
class Lowered:
    """One program with a method for each case."""

    program: bytes
    oracle: HostRuntime
    interpreter: Interpreter


@pytest.fixture(scope="module")
def interpreter(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(build_runner(shared_folder / "pte-host-runner"), tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def exact(interpreter: Interpreter) -> Lowered:
    program = lower(EXACT)
    return Lowered(program, HostRuntime(program), interpreter)


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
def test_equals_host_runtime(exact: Lowered, name: str) -> None:
    case = EXACT[name]
    expected = exact.oracle.run(name, case.inputs, case.channels_last)
    found = exact.interpreter.run(exact.program, name, _in_memory_order(case))
    assert found.status == "ok", found.reason
    assert len(found.outputs) == len(expected) > 0
    for output, wanted in zip(found.outputs, expected, strict=True):
        assert same_bits(output, wanted), numpy.argwhere(output != wanted)[:5]


def _in_memory_order(case: Case) -> list[Array]:
    if not case.channels_last:
        return list(case.inputs)
    return [array.transpose(0, 2, 3, 1) if array.ndim == 4 else array for array in case.inputs]


def test_every_kernel_is_called(exact: Lowered) -> None:
    """Each operator of the manifest is computed by some case here or in the tests below."""
    elsewhere = {
        "cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out", "aten::mm.out", "aten::clone.out",
        "aten::add.Scalar_out", "aten::sub.Scalar_out", "aten::mul.Scalar_out", "aten::div.Scalar_out",
    }  # fmt: skip
    called = {operator for plan in pte.parse(exact.program).plans for operator in plan.called_operators()}
    manifest = tomllib.loads((FIRMWARE / "kernels" / "kernels.toml").read_text(encoding="utf-8"))
    assert {row["operator"] for row in manifest["kernel"]} - called == elsewhere


def test_every_manifest_row_names_a_declared_function() -> None:
    manifest = tomllib.loads((FIRMWARE / "kernels" / "kernels.toml").read_text(encoding="utf-8"))["kernel"]
    header = (FIRMWARE / "kernels" / "kernels.hpp").read_text(encoding="utf-8")
    declared = set(re.findall(r"Status (\w+)\(KernelContext&", header))
    assert {row["function"] for row in manifest} == declared
    for row in manifest:
        source = (FIRMWARE / "kernels" / row["source"]).read_text(encoding="utf-8")
        assert re.search(rf"^Status {row['function']}\(", source, re.MULTILINE), row


def test_division_by_a_lone_number(interpreter: Interpreter) -> None:
    """IEEE division, where the wheel's optimised kernel multiplies by the reciprocal: within one unit of it."""
    numerators = floats(200, scale=50)
    cases = {
        "number": Case(lambda torch, a: a / 2.7, (numerators,)),
        "integer": Case(lambda torch, a: a / 3, (integers("int32", 200),)),
        "tensor": Case(lambda torch, a, b: a / b, (numerators, numpy.float32(1.7))),
    }
    program = lower(cases)
    oracle = HostRuntime(program)
    for name, divisor in (("number", 2.7), ("integer", 3), ("tensor", 1.7)):
        run = interpreter.run(program, name, cases[name].inputs)
        quotient = cases[name].inputs[0].astype(numpy.float32) / numpy.float32(divisor)
        assert same_bits(run.outputs[0], quotient)
        numpy.testing.assert_array_max_ulp(run.outputs[0], oracle.run(name, cases[name].inputs)[0], maxulp=1)


def test_matrix_product_sums_in_index_order(interpreter: Interpreter) -> None:
    """aten::mm as the wheel's portable addmm with an addend of 0: its optimised mm sums in another order."""
    left, right = floats(7, 133), floats(133, 11, seed=1)
    cases = {
        "mm": Case(lambda torch, a, b: torch.mm(a, b), (left, right)),
        "addmm": Case(
            lambda torch, z, a, b: torch.addmm(z, a, b), (numpy.zeros((7, 11), numpy.float32), left, right)
        ),
    }
    program = lower(cases)
    found = interpreter.run(program, "mm", cases["mm"].inputs).outputs[0]
    oracle = HostRuntime(program)
    assert same_bits(found, oracle.run("addmm", cases["addmm"].inputs)[0])
    numpy.testing.assert_allclose(found, oracle.run("mm", cases["mm"].inputs)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("scale", "zero_point"), QUANTIZATIONS)
def test_cortex_m_operators_equal_their_twins(
    interpreter: Interpreter, scale: float, zero_point: int
) -> None:
    """cortex_m::{quantize,dequantize}_per_tensor, which the host runtime lacks, as quantized_decomposed's.

    That they are twins is what executorch.backends.cortex_m.ops.operators says: it implements them by those.
    The program is made from one with the twins by renaming its operators, as ReplaceQuantNodesPass does.
    """
    arguments = (scale, zero_point, -128, 127)

    def round_trip(torch, x):  # type: ignore[no-untyped-def]
        twins = torch.ops.quantized_decomposed
        quantized = twins.quantize_per_tensor(x, *arguments, torch.int8)
        return quantized, twins.dequantize_per_tensor(quantized, *arguments, torch.int8)

    inputs = (special_floats(300, scale),)
    expected = HostRuntime(lower({"forward": Case(round_trip, inputs)})).run("forward", inputs)
    program = _lower_for_cortex_m(round_trip, inputs)
    assert set(pte.parse(program).plan().called_operators()) == {
        "cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out",
    }  # fmt: skip
    run = interpreter.run(program, "forward", inputs)
    assert run.status == "ok", run.reason
    assert all(same_bits(found, wanted) for found, wanted in zip(run.outputs, expected, strict=True))
