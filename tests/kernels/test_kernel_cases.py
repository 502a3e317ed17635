"""Every kernel of the firmware against ExecuTorch's own runtime: tests/kernels/cases within their bounds.

Also: that the comparison notices a wrong kernel, that no argument makes a kernel do what is undefined, and that
docs/reference/kernels.md says what is tested.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk import proc, pte
from ethosu_sdk.firmware_build.kernels import manifest
from tests.integration.cli import sdk
from tests.kernels.cases import bounds, document
from tests.kernels.cases.programs import earlier_groups, groups, lowered_group
from tests.kernels.interpreter.lowered import Pairs, by_case
from tests.kernels.interpreter.models import Array, HostRuntime, lower_dynamic
from tests.kernels.interpreter.runner import FIRMWARE, MANIFEST, Interpreter, build_runner, same_bits
from tests.places import ROOT

pytestmark = pytest.mark.torch

GROUPS = groups()
CASES = [(group, name) for group, rows in GROUPS.items() for name in rows.cases]
IDS = [f"{group}:{name}" for group, name in CASES]
LEAST_OPERATORS, LEAST_CASES = 60, 400
# Functions that other tests call: test_kernels.py, test_interpreter.py (state) and arguments_test.cpp.
ELSEWHERE = {
    "mm_out",
    "div_scalar_out",
    "copy_in_place",
    "index_put_in_place",
    "empty_out",
}


@pytest.fixture(scope="module")
def runner(shared_folder: Path) -> Path:
    return build_runner(shared_folder / "pte-host-runner")


@pytest.fixture(scope="module")
def results(runner: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pairs]:
    """The group's outputs on this machine beside the oracle's."""
    interpreter = Interpreter(runner, tmp_path_factory.mktemp("kernel-cases"))
    made: dict[str, Pairs] = {}

    def result(name: str) -> Pairs:
        if name not in made:
            made[name] = lowered_group(name).pairs(interpreter)
        return made[name]

    return result


def _far(name: str, pairs: list[tuple[Array, Array]]) -> list[str]:
    """What is farther from the oracle than the case's bound."""
    bound = bounds.bound_of(name)
    return [f"{name}: {found} for {wanted}" for found, wanted in pairs if not bound.holds(found, wanted)]


@pytest.mark.parametrize(("group", "name"), CASES, ids=IDS)
def test_equals_host_runtime(results: Callable[[str], Pairs], group: str, name: str) -> None:
    assert _far(name, results(group)[name]) == []


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.parametrize("group", GROUPS)
def test_equals_host_runtime_on_cortex_m55(group: str, tmp_path: Path) -> None:
    """The same programs as firmware on QEMU: newlib's functions and the M55's code, against the same oracle."""
    program = lowered_group(group)
    (tmp_path / "kernels.pte").write_bytes(program.program)
    inputs = [array for case in program.cases.values() for array in case.inputs]
    numpy.savez(tmp_path / "inputs.npz", **{f"input{i}": array for i, array in enumerate(inputs)})
    outcome = sdk("run", "kernels.pte", "--inputs", "inputs.npz", "-o", "out", "-q", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    with numpy.load(tmp_path / "out" / "outputs.npz") as outputs:
        found = [outputs[f"output{i}"] for i in range(len(program.expected))]
    pairs = by_case(program.cases, found, program.expected)
    assert [line for name in program.cases for line in _far(name, pairs[name])] == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_wrong_kernel_is_noticed(runner: Path, group: str, tmp_path: Path) -> None:
    """The negative control: with one bit of every kernel's result turned, only cases without elements pass."""
    program = lowered_group(group)
    altered = Interpreter(runner.with_name("kernels_altered_runner"), tmp_path)
    pairs = program.pairs(altered)
    empty = {name for name in program.cases if all(wanted.size == 0 for _, wanted in pairs[name])}
    unnoticed = {name for name in program.cases if not _far(name, pairs[name])}
    assert unnoticed == empty


@pytest.mark.parametrize("group", GROUPS)
def test_no_argument_is_undefined_behaviour(runner: Path, group: str, tmp_path: Path) -> None:
    """Each call, over and over with damaged arguments, under the sanitizers: ok or a named error, and no more."""
    program = lowered_group(group)
    run = Interpreter(runner.with_name("kernels_hostile_runner"), tmp_path)
    hostile = run.run(program.program, "forward", program.inputs, timeout_s=600, trailer="attacks ")
    assert hostile.status == "ok", hostile.reason


def test_every_operator_has_a_case() -> None:
    names = [*GROUPS, *earlier_groups()]
    called = set().union(*(lowered_group(name).called for name in names))
    functions = {name: kernel.function for name, kernel in manifest(MANIFEST).items()}
    tested = {functions[operator] for operator in called}
    assert set(functions.values()) - tested - ELSEWHERE == _primitives()
    assert len(called) >= LEAST_OPERATORS
    assert len(CASES) >= LEAST_CASES


def _primitives() -> set[str]:
    """Functions on the program's own numbers, which primitives_test.cpp calls."""
    source = (FIRMWARE / "tests" / "runtime" / "primitives_test.cpp").read_text(encoding="utf-8")
    return set(re.findall(r"kernels::(\w+)", source))


def test_primitives(runner: Path) -> None:
    result = proc.run([str(runner.with_name("kernels_primitives_test"))], timeout_s=60, check=False)
    assert result.returncode == 0, result.output


def test_dynamic_shapes(runner: Path, tmp_path: Path) -> None:
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
    run = Interpreter(runner, tmp_path).run(program, "forward", [rows.numpy()])
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


def test_the_document_is_up_to_date() -> None:
    """docs/reference/kernels.md, which `python -m tests.kernels.cases.document` writes."""
    plans = [pte.parse(lowered_group(name).program).plan() for name in (*GROUPS, *earlier_groups())]
    text = document.text(manifest(MANIFEST), plans)
    assert (ROOT / "docs" / "reference" / "kernels.md").read_text(encoding="utf-8") == text


def test_every_bound_has_a_reason_and_a_case() -> None:
    used = {name.partition("/")[0] for _, name in CASES}
    assert set(bounds.bounds()) <= used
    assert all(bound.why and bound != bounds.EXACT for bound in bounds.bounds().values())
