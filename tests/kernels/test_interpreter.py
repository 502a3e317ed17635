"""The firmware's `.pte` interpreter on this machine, against ExecuTorch's own runtime."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk.base import proc
from ethosu_sdk.firmware_build import generated_files
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import KernelCall
from tests.conftest import ZooPte
from tests.kernels.interpreter.backend import ACCEPTED_ID, OWN_ID, lower_with_delegates, payload
from tests.kernels.interpreter.cases import floats
from tests.kernels.interpreter.models import Array, Case, HostRuntime, lower, lowering, stored_inputs
from tests.kernels.interpreter.programs import branches, net_case, two_additions
from tests.kernels.interpreter.runner import (
    CPP_TESTS,
    FIRMWARE,
    Interpreter,
    Run,
    built,
    kept_tree,
    same_bits,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(built(), tmp_path_factory.mktemp("interpreter"))


def _check(
    interpreter: Interpreter, program: bytes, case: Case, *, name: str = "forward", repeats: int = 2
) -> Run:
    """Run on both runtimes and compare every output; the inputs are set before each repeat."""
    run = interpreter.run(program, name, stored_inputs([case]), repeats=repeats)
    assert run.status == "ok", run.reason
    expected = HostRuntime(program).run(name, [case])
    assert len(run.outputs) == len(expected) > 0
    for found, wanted in zip(run.outputs, expected, strict=True):
        assert same_bits(found, wanted)
    return run


def test_network_with_constants(interpreter: Interpreter) -> None:
    case = net_case()
    program = lower({"forward": [case]})
    assert program[8:12] == b"eh00"
    run = _check(interpreter, program, case)
    assert [line.split()[0] for line in run.instructions] == ["kernel"] * len(run.instructions)
    assert "kernel aten::convolution.out" in run.instructions


def test_instructions_are_reported_in_order(interpreter: Interpreter) -> None:
    case = net_case()
    program = lower({"forward": [case]})
    calls = [
        pte.parse(program).plan().operators[instruction.op_index].full_name
        for instruction in pte.parse(program).plan().instructions
        if isinstance(instruction, KernelCall)
    ]
    run = interpreter.run(program, "forward", case.inputs)
    assert list(run.instructions) == [f"kernel {name}" for name in calls]


def test_method_is_found_by_name(interpreter: Interpreter) -> None:
    double, triple = Case(lambda torch, x: x * 2, (floats(5),)), Case(lambda torch, x: x * 3, (floats(5),))
    program = lower({"double": [double], "triple": [triple]})
    assert same_bits(
        interpreter.run(program, "triple", triple.inputs).outputs[0], floats(5) * numpy.float32(3)
    )
    assert same_bits(
        interpreter.run(program, "double", double.inputs).outputs[0], floats(5) * numpy.float32(2)
    )
    missing = interpreter.run(program, "doubl", double.inputs, planned=[64])
    assert (missing.status, missing.reason) == ("method_not_found", "load: the program has no method 'doubl'")


@pytest.mark.parametrize("condition", [True, False])
def test_conditional(interpreter: Interpreter, condition: bool) -> None:
    """JumpFalseCall on a bool tensor and on a constant, MoveCall of the branches' results."""
    case = Case(branches, (numpy.array(condition), floats(6)), outputs=2)
    program = lower({"forward": [case]})
    run = _check(interpreter, program, case)
    kinds = {line.split()[0] for line in run.instructions}
    assert {"jump", "move"} <= kinds
    assert ("aten::sub.out" in " ".join(run.instructions)) == (not condition)


def test_nested_conditional_takes_each_path(interpreter: Interpreter) -> None:
    def nested(torch: Any, outer: Any, inner: Any, x: Any) -> Any:
        def either(x: Any) -> Any:
            return torch.cond(inner, lambda x: x + 1, lambda x: x + 2, (x,))

        return torch.cond(outer, either, lambda x: x * 4, (x,))

    flags = [(True, True), (True, False), (False, True)]
    cases = [Case(nested, (numpy.array(outer), numpy.array(inner), floats(4))) for outer, inner in flags]
    program = lower({"forward": [cases[0]]})
    results = [_check(interpreter, program, case).outputs[0].tobytes() for case in cases]
    assert len(set(results)) == 3


def test_several_arenas(interpreter: Interpreter) -> None:
    """Inputs, activations and outputs spread over three planned buffers by a memory plan of our own."""
    case = net_case()
    with lowering():
        from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
        from executorch.exir.passes import MemoryPlanningPass

        def spread(alignment: int, specs: Any, *arguments: Any, **options: Any) -> Any:
            for number, spec in enumerate(
                sorted(specs, key=lambda spec: (tuple(spec.shape), str(spec.dtype)))
            ):
                spec.mem_id = 1 + number % 3
            return greedy(alignment, specs, *arguments, **options)

        planning = MemoryPlanningPass(MemoryPlanningAlgorithmSuite(algo_list=[spread]))
    program = lower({"forward": [case]}, memory_planning_pass=planning)
    sizes = pte.parse(program).plan().non_const_buffer_sizes
    assert len(sizes) == 4
    assert all(sizes[1:])
    _check(interpreter, program, case)
    short = [*sizes[1:3], sizes[3] - 1]
    refused = interpreter.run(program, "forward", case.inputs, planned=short)
    expected = f"load: planned buffer 3 needs {sizes[3]} bytes and has {sizes[3] - 1}"
    assert (refused.status, refused.reason) == ("out_of_memory", expected)


def test_mutable_buffer_keeps_its_state(interpreter: Interpreter) -> None:
    """An initial state in the file, copied once, and changed by every execution."""
    with lowering():
        import torch
        from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

        class Counter(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("state", torch.tensor([17.0, -3.0, 0.5]))

            def forward(self, x: Any) -> Any:
                self.state.add_(x)
                return self.state * 1.0

        case = Case(Counter(), (numpy.array([3, 10, 0.25], numpy.float32),))
        program = lower({"forward": [case]}, passes=[InitializedMutableBufferPass(["state"])])
    for repeats in (1, 2, 5):
        run = interpreter.run(program, "forward", case.inputs, repeats=repeats)
        expected = numpy.array([17, -3, 0.5], numpy.float32) + repeats * case.inputs[0]
        assert run.status == "ok", run.reason
        assert same_bits(run.outputs[0], expected)


def test_inputs_and_outputs_without_a_plan(interpreter: Interpreter) -> None:
    """Graph inputs and outputs whose memory the caller brings."""
    case = net_case()
    with lowering():
        from executorch.exir.passes import MemoryPlanningPass

        planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    program = lower({"forward": [case]}, memory_planning_pass=planning)
    planned = lower({"forward": [case]})
    assert not any(tensor.allocation for tensor in pte.parse(program).plan().input_tensors())
    run = interpreter.run(program, "forward", case.inputs, repeats=2)
    assert run.status == "ok", run.reason
    assert same_bits(run.outputs[0], HostRuntime(planned).run("forward", [case])[0])


def test_bounded_dynamic_shape(interpreter: Interpreter) -> None:
    """Tensors that the program declares with an upper bound, at that bound."""
    with lowering():
        import torch
        from executorch.exir import EdgeCompileConfig, to_edge

        class Rows(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return torch.softmax(x * 2 + 1, dim=-1)

        rows = torch.export.Dim("rows", min=2, max=9)
        example = (torch.from_numpy(floats(4, 6)),)
        exported = torch.export.export(Rows(), example, dynamic_shapes={"x": {0: rows}})
        program = bytes(
            to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
            .to_executorch()
            .buffer
        )
    _check(interpreter, program, Case(None, (floats(9, 6, seed=4),)))


def test_short_input_is_refused(interpreter: Interpreter) -> None:
    case = net_case()
    run = interpreter.run(lower({"forward": [case]}), "forward", [case.inputs[0][:, :1]])
    assert run.status == "shape_mismatch"


def test_missing_kernel_is_named(interpreter: Interpreter) -> None:
    case = Case(lambda torch, x: torch.nn.functional.pdist(x), (floats(3, 2),))
    run = interpreter.run(lower({"forward": [case]}), "forward", case.inputs)
    assert (run.status, run.reason) == ("missing_kernel", "load: no kernel for aten::_pdist_forward.out")


def _stand_in(payload_byte: int, instruction: int, *inputs: Array) -> Array:
    """What the runner's delegate writes, after firmware/tests/runtime/recording_delegate.hpp, as float32."""
    total = sum(int(numpy.frombuffer(array.tobytes(), numpy.uint8).sum()) for array in inputs)
    count = inputs[0].nbytes
    values = (payload_byte + 3 * instruction + 5 * total + numpy.arange(count)) % 256
    return numpy.frombuffer(values.astype(numpy.uint8).tobytes(), numpy.float32)


@pytest.mark.parametrize("segments", [False, True])
def test_delegates(interpreter: Interpreter, segments: bool) -> None:
    """Two delegates among kernels, payloads inline or in segments: payloads, arguments and order are right."""
    x, y = floats(6), floats(6, seed=1)
    case = Case(two_additions, (x, y))
    program = lower_with_delegates([case], segments=segments).replace(OWN_ID, ACCEPTED_ID)
    run = interpreter.run(program, "forward", [x, y], planned=[4096])
    assert run.status == "ok", run.reason
    for index in range(2):
        text = payload(index)
        assert f"delegate {index} payload {len(text)} bytes, sum {sum(text)}" in run.lines
    kinds = [line.split()[0] for line in run.instructions]
    assert kinds == ["delegate", "kernel", "delegate", "kernel"]
    first = _stand_in(payload(0)[0], 0, x, y) * y
    assert same_bits(run.outputs[0], _stand_in(payload(1)[0], 2, first, y) * x)


def test_other_backends_are_refused(interpreter: Interpreter) -> None:
    case = Case(two_additions, (floats(6), floats(6, seed=1)))
    program = lower_with_delegates([case], segments=False)
    run = interpreter.run(program, "forward", case.inputs, planned=[4096])
    assert (run.status, run.reason) == ("missing_delegate", "load: delegate 0: no backend 'RecordBackend'")


@pytest.mark.parametrize("name", ["softmax", "digits_cnn", "ds_cnn"])
def test_delegated_zoo_models_load_and_run(interpreter: Interpreter, zoo_pte: ZooPte, name: str) -> None:
    """Vela's payloads reach the delegate unchanged; the NPU's own arithmetic is tested elsewhere."""
    program = zoo_pte(name).pte.read_bytes()
    plan = pte.parse(program).plan()
    run = interpreter.run(program, "forward", [floats(*tensor.sizes) for tensor in plan.input_tensors()])
    assert run.status == "ok", run.reason
    for index, delegate in enumerate(plan.delegates):
        blob = bytes(delegate.payload)
        assert f"delegate {index} payload {len(blob)} bytes, sum {sum(blob)}" in run.lines
    assert run.instructions.count("delegate EthosUBackend") == len(plan.delegates)


def test_number_inputs(interpreter: Interpreter) -> None:
    """Numbers among the example inputs stay in the list of inputs, as values that are no tensors."""
    with lowering():
        import torch
        from executorch.exir import to_edge

        class Scaled(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any, factor: float, more: int) -> Any:
                return x * factor + more

        exported = torch.export.export(Scaled(), (torch.from_numpy(floats(5)), 2.5, 3))
        program = bytes(to_edge(exported).to_executorch().buffer)
    assert len(pte.parse(program).plan().inputs) == 3
    run = interpreter.run(program, "forward", [floats(5), None, None])
    assert run.status == "ok", run.reason
    assert same_bits(run.outputs[0], floats(5) * numpy.float32(2.5) + numpy.float32(3))


def test_programs_and_arguments_that_no_exporter_writes() -> None:
    """firmware/tests/runtime's own test programs, under the sanitizers."""
    for name in CPP_TESTS:
        result = proc.run([str(built(name))], timeout_s=60, check=False)
        assert (name, result.returncode, result.output) == (name, 0, "")


_MEMORY_CALLS = {"memcpy", "memmove", "memset", "memcmp", "strcmp", "strncmp", "strlen"}
_SINGLE_NAMES = """
    acosf acoshf asinf asinhf atan2f atanf atanhf cosf coshf erff expf expm1f fmodf log10f log1pf
    log2f logf nearbyintf powf sinf sinhf sqrtf tanf tanhf ceilf floorf truncf
"""
_DOUBLE_CALLS = {"__ctzdi2", "ceil", "exp", "floor", "fmod", "ldexp", "log", "nearbyint", "sqrt", "trunc"}
_LIBRARY_CALLS = _MEMORY_CALLS | {*_SINGLE_NAMES.split()} | _DOUBLE_CALLS


@pytest.mark.toolchain
def test_cross_compiles_without_heap() -> None:
    """The same sources for Cortex-M55, warnings as errors: all that they ask for is a few pure functions.

    So there is no heap, no exception, no stdio and no abort.
    """
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={FIRMWARE / 'cmake' / 'gnu-arm.cmake'}"
    tree = kept_tree("arm-tree", ["ethosu_runtime"], toolchain, "-DETHOSU_BOARD=corstone-300")
    archives = [tree / "runtime" / "libethosu_runtime.a", tree / "kernels" / "libethosu_kernels.a"]
    listing = proc.run(["arm-none-eabi-nm", "--undefined-only", *map(str, archives)], timeout_s=60).output
    undefined = {line.split()[1] for line in listing.splitlines() if line.strip().startswith("U ")}
    own = ("_ZN10ethosu_sdk", "_ZNK10ethosu_sdk", "ethosu_mark_")
    library = {name for name in undefined if not name.startswith((*own, "__aeabi_"))}
    assert {"memcpy", "expf"} <= library <= _LIBRARY_CALLS, library - _LIBRARY_CALLS
    _check_operators_include_what_they_call(archives[1])


def _check_operators_include_what_they_call(archive: Path) -> None:
    """A model's firmware has the files of its operators and of the headers in them: no call goes to another file."""
    sources = {
        f"kernels/operators/{path.name}": path.read_bytes()
        for path in (FIRMWARE / "kernels" / "operators").iterdir()
    }
    listing = proc.run(["arm-none-eabi-nm", "--print-file-name", str(archive)], timeout_s=60).output
    rows = [line.removeprefix(f"{archive}:").split() for line in listing.splitlines()]
    members = [(row[0].partition(".obj:")[0], row[-2], row[-1]) for row in rows if len(row) > 2]
    home = {symbol: name for name, kind, symbol in members if kind == "T"}
    calls = {
        (name, home[symbol])
        for name, kind, symbol in members
        if kind == "U"
        and {f"kernels/operators/{name}", f"kernels/operators/{home.get(symbol)}"} <= sources.keys()
    }
    assert ("padding.cpp", "fill.cpp") in calls
    for caller, callee in calls:
        chosen = [generated_files.Kernel("aten::any.out", "any", ("out",), caller)]
        assert f"operators/{callee}\n" in generated_files.source_list(chosen, sources), (caller, callee)
