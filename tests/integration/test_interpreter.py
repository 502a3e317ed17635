"""The firmware's `.pte` interpreter on this machine, against ExecuTorch's own runtime and against damaged files."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk import proc, pte
from tests.conftest import ZooPte
from tests.interpreter_cases import floats, integers, special_floats
from tests.interpreter_models import Array, Case, HostRuntime, edge_program, lower, lowering, stored_inputs
from tests.interpreter_runner import FIRMWARE, Interpreter, Run, build_runner, configure_and_build, same_bits

pytestmark = pytest.mark.torch

# Every error's name; a damaged file must end in one of them.
STATUS_NAMES = frozenset(
    re.findall(r"^  (\w+),", (FIRMWARE / "kernels" / "kernel_api.hpp").read_text().split("enum class Status")[1], re.M)
)
RUN_LIMIT_S = 20.0


@pytest.fixture(scope="module")
def interpreter(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(build_runner(shared_folder / "pte-host-runner"), tmp_path_factory.mktemp("interpreter"))


def _check(interpreter: Interpreter, program: bytes, case: Case, *, name: str = "forward", repeats: int = 2) -> Run:
    """Run on both runtimes and compare every output; the inputs are set before each repeat."""
    run = interpreter.run(program, name, stored_inputs([case]), repeats=repeats)
    assert run.status == "ok", run.reason
    expected = HostRuntime(program).run(name, [case])
    assert len(run.outputs) == len(expected) > 0
    for found, wanted in zip(run.outputs, expected, strict=True):
        assert same_bits(found, wanted)
    return run


def _small_net(torch: Any) -> Any:
    """Convolution, pooling, linear and softmax: constants, aliased views and a reused arena."""
    torch.manual_seed(1)
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(2, 4, 3, padding=1), layers.ReLU(), layers.MaxPool2d(2), layers.Flatten(),
        layers.Linear(4 * 4 * 4, 10), layers.Softmax(dim=-1),
    )  # fmt: skip


def _net_case() -> Case:
    import torch

    return Case(_small_net(torch), (floats(1, 2, 8, 8),))


def test_network_with_constants(interpreter: Interpreter) -> None:
    case = _net_case()
    program = lower({"forward": [case]})
    assert program[8:12] == b"eh00"
    run = _check(interpreter, program, case)
    assert [line.split()[0] for line in run.instructions] == ["kernel"] * len(run.instructions)
    assert "kernel aten::convolution.out" in run.instructions


def test_instructions_are_reported_in_order(interpreter: Interpreter) -> None:
    case = _net_case()
    program = lower({"forward": [case]})
    calls = [
        pte.parse(program).plan().operators[instruction.operator].full_name
        for instruction in pte.parse(program).plan().instructions
        if isinstance(instruction, pte.KernelCall)
    ]
    run = interpreter.run(program, "forward", case.inputs)
    assert list(run.instructions) == [f"kernel {name}" for name in calls]


def test_method_is_found_by_name(interpreter: Interpreter) -> None:
    double, triple = Case(lambda torch, x: x * 2, (floats(5),)), Case(lambda torch, x: x * 3, (floats(5),))
    program = lower({"double": [double], "triple": [triple]})
    assert same_bits(interpreter.run(program, "triple", triple.inputs).outputs[0], floats(5) * numpy.float32(3))
    assert same_bits(interpreter.run(program, "double", double.inputs).outputs[0], floats(5) * numpy.float32(2))
    missing = interpreter.run(program, "doubl", double.inputs, planned=[64])
    assert (missing.status, missing.reason) == ("method_not_found", "load: the program has no method 'doubl'")


def _branches(torch: Any, condition: Any, x: Any) -> Any:
    return torch.cond(condition, lambda x: (x + x, x * 3), lambda x: (x - 1, x * x), (x,))


@pytest.mark.parametrize("condition", [True, False])
def test_conditional(interpreter: Interpreter, condition: bool) -> None:
    """JumpFalseCall on a bool tensor and on a constant, MoveCall of the branches' results."""
    case = Case(_branches, (numpy.array(condition), floats(6)), outputs=2)
    program = lower({"forward": [case]})
    run = _check(interpreter, program, case)
    kinds = {line.split()[0] for line in run.instructions}
    assert {"jump_false", "move"} <= kinds
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
    case = _net_case()
    with lowering():
        from executorch.exir import ExecutorchBackendConfig
        from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
        from executorch.exir.passes import MemoryPlanningPass

        def spread(alignment: int, specs: Any, *arguments: Any, **options: Any) -> Any:
            for number, spec in enumerate(sorted(specs, key=lambda spec: (tuple(spec.shape), str(spec.dtype)))):
                spec.mem_id = 1 + number % 3
            return greedy(alignment, specs, *arguments, **options)

        planning = MemoryPlanningPass(MemoryPlanningAlgorithmSuite(algo_list=[spread]))
        program = bytes(
            edge_program({"forward": [case]}).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)).buffer
        )
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
        from executorch.exir import ExecutorchBackendConfig
        from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

        class Counter(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("state", torch.tensor([17.0, -3.0, 0.5]))

            def forward(self, x: Any) -> Any:
                self.state.add_(x)
                return self.state * 1.0

        case = Case(Counter(), (numpy.array([3, 10, 0.25], numpy.float32),))
        config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["state"])])
        program = bytes(edge_program({"forward": [case]}).to_executorch(config).buffer)
    for repeats in (1, 2, 5):
        run = interpreter.run(program, "forward", case.inputs, repeats=repeats)
        expected = numpy.array([17, -3, 0.5], numpy.float32) + repeats * case.inputs[0]
        assert same_bits(run.outputs[0], expected), run.reason


def test_inputs_and_outputs_without_a_plan(interpreter: Interpreter) -> None:
    """Graph inputs and outputs whose memory the caller brings."""
    case = _net_case()
    with lowering():
        from executorch.exir import ExecutorchBackendConfig
        from executorch.exir.passes import MemoryPlanningPass

        planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
        program = bytes(
            edge_program({"forward": [case]}).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)).buffer
        )
    planned = lower({"forward": [case]})
    assert not any(tensor.allocation for tensor in pte.parse(program).plan().input_tensors)
    run = interpreter.run(program, "forward", case.inputs, repeats=2)
    assert run.status == "ok", run.reason
    assert same_bits(run.outputs[0], HostRuntime(planned).run("forward", [case])[0])


def test_bounded_dynamic_shape(interpreter: Interpreter) -> None:
    """Tensors that the program declares with an upper bound, at that bound."""
    with lowering():
        import torch
        from executorch.exir import EdgeCompileConfig, to_edge

        class Rows(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.softmax(x * 2 + 1, dim=-1)

        rows = torch.export.Dim("rows", min=2, max=9)
        example = (torch.from_numpy(floats(4, 6)),)
        exported = torch.export.export(Rows(), example, dynamic_shapes={"x": {0: rows}})
        program = bytes(to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch().buffer)
    _check(interpreter, program, Case(None, (floats(9, 6, seed=4),)))


def test_scalar_inputs_and_outputs(interpreter: Interpreter) -> None:
    """An input that the exporter turned into a constant stays in the list of inputs."""
    case = Case(lambda torch, x: (x + 1, x.sum(dim=0, keepdim=True) * 0 + 2)[0], (floats(3),))
    _check(interpreter, lower({"forward": [case]}), case)


def test_short_input_is_refused(interpreter: Interpreter) -> None:
    case = _net_case()
    run = interpreter.run(lower({"forward": [case]}), "forward", [case.inputs[0][:, :1]])
    assert run.status == "shape_mismatch"


def test_missing_kernel_is_named(interpreter: Interpreter) -> None:
    case = Case(lambda torch, x: torch.erf(x), (floats(3),))
    run = interpreter.run(lower({"forward": [case]}), "forward", case.inputs)
    assert (run.status, run.reason) == ("missing_kernel", "load: no kernel for aten::erf.out")


@pytest.mark.parametrize("segments", [False, True])
def test_delegates(interpreter: Interpreter, zoo_pte: ZooPte, segments: bool) -> None:
    """Two delegates, payloads inline or in segments: the runtime hands over the right bytes and tensors."""
    program = zoo_pte("ds_cnn").pte.read_bytes() if not segments else _ds_cnn_with_segments(zoo_pte)
    plan = pte.parse(program).plan()
    assert len(plan.delegates) == 2
    run = interpreter.run(program, "forward", [floats(*plan.input_tensors[0].sizes)])
    assert run.status == "ok", run.reason
    for index, delegate in enumerate(plan.delegates):
        payload = bytes(delegate.payload)
        assert f"delegate {index} payload {len(payload)} bytes, sum {sum(payload)}" in run.lines
    assert run.instructions.count("delegate EthosUBackend") == 2
