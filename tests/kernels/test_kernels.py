"""Every kernel of the firmware against ExecuTorch's own runtime: tests/kernels/cases within their bounds.

The oracle is the runtime of the executorch wheel (its portable, optimised and quantized kernels); where that is none,
the test says what is compared instead. Also: that the comparison notices a wrong kernel, that no argument makes a
kernel do what is undefined, and that docs/reference/kernels.md says what is tested.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk.firmware_build.generated_files import kernel_manifest
from ethosu_sdk.program import pte
from tests.integration.cli import sdk
from tests.kernels.cases import bounds, document
from tests.kernels.cases.programs import families, groups, lowered_group
from tests.kernels.interpreter.cases import QUANTIZATIONS, floats, integers, special_floats
from tests.kernels.interpreter.lowered import Pairs, by_case
from tests.kernels.interpreter.models import (
    Array,
    Case,
    HostRuntime,
    edge_program,
    lower,
    lower_dynamic,
    lowering,
    stored_inputs,
)
from tests.kernels.interpreter.runner import FIRMWARE, MANIFEST, Interpreter, built, same_bits
from tests.places import ROOT

pytestmark = pytest.mark.torch

GROUPS, FAMILIES = groups(), families()
LEAST_OPERATORS, LEAST_CASES = 60, 400
# Functions that other tests call: below, test_interpreter.py (state) and arguments_test.cpp.
ELSEWHERE = {
    "mm_out",
    "div_scalar_out",
    "copy_in_place",
    "index_put_in_place",
    "empty_out",
}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(built(), tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def results(interpreter: Interpreter) -> Callable[[str], Pairs]:
    """The outputs of a group on this machine beside the oracle's."""
    return functools.cache(lambda group: lowered_group(group).pairs(interpreter))


def _far(name: str, pairs: list[tuple[Array, Array]]) -> list[str]:
    """What is farther from the oracle than the case's bound."""
    bound = bounds.bound_of(name)
    return [f"{name}: {found} for {wanted}" for found, wanted in pairs if not bound.holds(found, wanted)]


def _all(names: Any, core: str) -> pytest.MarkDecorator:
    marks = {core: [pytest.mark.core]}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks.get(name, [])) for name in names])


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


@_all(FAMILIES, core="numbers")
def test_equals_host_runtime(results: Callable[[str], Pairs], name: str) -> None:
    assert [line for group, case in FAMILIES[name] for line in _far(case, results(group)[case])] == []


@pytest.mark.qemu
@pytest.mark.toolchain
@_all(GROUPS, core="numbers")
def test_equals_host_runtime_on_cortex_m55(name: str, tmp_path: Path) -> None:
    """The same programs as firmware on QEMU: newlib's functions and the M55's code, against the same oracle."""
    program = lowered_group(name)
    (tmp_path / "kernels.pte").write_bytes(program.program)
    inputs = [array for case in program.cases.values() for array in case.inputs]
    numpy.savez(tmp_path / "inputs.npz", **{f"input{i}": array for i, array in enumerate(inputs)})
    outcome = sdk("run", "kernels.pte", "--inputs", "inputs.npz", "-o", "out", "-q", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    with numpy.load(tmp_path / "out" / "outputs.npz") as outputs:
        found = [outputs[f"output{i}"] for i in range(len(program.expected))]
    pairs = by_case(program.cases, found, program.expected)
    assert [line for case in program.cases for line in _far(case, pairs[case])] == []


def test_a_wrong_kernel_is_noticed(tmp_path: Path) -> None:
    """The negative control: with one bit of every kernel's result turned, only cases without elements pass."""
    altered = Interpreter(built("kernels_altered_runner"), tmp_path)
    for program in map(lowered_group, GROUPS):
        pairs = program.pairs(altered)
        empty = {case for case in program.cases if all(wanted.size == 0 for _, wanted in pairs[case])}
        assert {case for case in program.cases if not _far(case, pairs[case])} == empty


@pytest.mark.parametrize("name", GROUPS)
def test_no_argument_is_undefined_behaviour(name: str, tmp_path: Path) -> None:
    """Each call, over and over with damaged arguments, under the sanitizers: ok or a named error, and no more."""
    program = lowered_group(name)
    run = Interpreter(built("kernels_hostile_runner"), tmp_path)
    hostile = run.run(program.program, "forward", program.inputs, timeout_s=600, trailer="attacks ")
    assert hostile.status == "ok", hostile.reason


def test_every_operator_has_a_case() -> None:
    called = set().union(*(lowered_group(name).called for name in GROUPS))
    functions = {name: kernel.function for name, kernel in kernel_manifest(MANIFEST).items()}
    tested = {functions[operator] for operator in called}
    assert set(functions.values()) - tested - ELSEWHERE == _primitives()
    assert len(called) >= LEAST_OPERATORS
    assert sum(len(group.cases) for group in GROUPS.values()) >= LEAST_CASES


def test_every_kernel_is_where_the_manifest_says() -> None:
    for kernel in kernel_manifest(MANIFEST).values():
        source = (MANIFEST.parent / "operators" / kernel.source).read_text(encoding="utf-8")
        assert re.search(rf"^Status {kernel.function}\(", source, re.MULTILINE), kernel


def _primitives() -> set[str]:
    """Functions on the program's own numbers, which primitives_test.cpp calls."""
    source = (FIRMWARE / "tests" / "runtime" / "primitives_test.cpp").read_text(encoding="utf-8")
    return set(re.findall(r"kernels::(\w+)", source))


def test_dynamic_shapes(interpreter: Interpreter) -> None:
    """Sizes that the program computes: sym_size, operators on numbers, and a view without memory of its own."""
    import torch

    rows = torch.arange(36.0).reshape(6, 6)
    program = lower_dynamic(
        _computed_sizes(torch), (rows,), {"x": {0: torch.export.Dim("rows", min=2, max=6)}}
    )
    called = pte.parse(program).plan().called_operators()
    assert {"executorch_prim::et_view.default", "executorch_prim::mul.Scalar", "aten::sym_size.int"} <= set(
        called
    )
    expected = HostRuntime(program).run_tensors("forward", (rows,))
    run = interpreter.run(program, "forward", [rows.numpy()])
    assert run.status == "ok", run.reason
    assert all(same_bits(*pair) for pair in zip(run.outputs, expected, strict=True))


def _computed_sizes(torch: Any) -> Any:
    class ComputedSizes(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            rows = x.shape[0]
            view = (x + 1).view(rows * 2, 3)
            return (
                view * 2,
                torch.cat([view, torch.full((rows + 1, 3), 2.0)]),
                torch.full((rows * 3 - 1,), 1.5),
            )

    return ComputedSizes()


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


def test_cortex_m_operators_equal_their_twins(interpreter: Interpreter) -> None:
    """cortex_m::{quantize,dequantize}_per_tensor, which the host runtime lacks, against quantized_decomposed's.

    That they are twins is said by executorch.backends.cortex_m.ops.operators, which implements them by those.
    """
    cases = [Case(_round_trip(*row), (special_floats(300, row[0]),), outputs=2) for row in QUANTIZATIONS]
    expected = HostRuntime(lower({"forward": cases})).run("forward", cases)
    with lowering():
        from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass

        edge = edge_program({"forward": cases}).transform([ReplaceQuantNodesPass()])
        program = bytes(edge.to_executorch().buffer)
    called = pte.parse(program).plan().called_operators()
    assert set(called) == {"cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out"}
    run = interpreter.run(program, "forward", stored_inputs(cases))
    assert run.status == "ok", run.reason
    assert all(same_bits(found, wanted) for found, wanted in zip(run.outputs, expected, strict=True))


def test_the_document_is_up_to_date() -> None:
    """docs/reference/kernels.md, which `python -m tests.kernels.cases.document` writes."""
    plans = [pte.parse(lowered_group(name).program).plan() for name in GROUPS]
    text = document.text(kernel_manifest(MANIFEST), plans)
    assert (ROOT / "docs" / "reference" / "kernels.md").read_text(encoding="utf-8") == text


def test_every_bound_has_a_reason_and_a_case() -> None:
    used = {name.partition("/")[0] for group in GROUPS.values() for name in group.cases}
    assert set(bounds.bounds()) <= used
    assert all(bound.why and bound != bounds.EXACT for bound in bounds.bounds().values())
