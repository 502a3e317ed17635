"""The firmware's `.pte` interpreter on this machine, against ExecuTorch's own runtime and against damaged files."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk import proc, pte
from ethosu_sdk.errors import InputError
from tests.conftest import ZooPte
from tests.interpreter_backend import ACCEPTED_ID, OWN_ID, lower_with_delegates, payload
from tests.interpreter_cases import floats, special_floats
from tests.interpreter_models import Array, Case, HostRuntime, edge_program, lower, lowering, stored_inputs
from tests.interpreter_runner import FIRMWARE, Interpreter, Run, build_runner, configure_and_build, same_bits

pytestmark = pytest.mark.torch

# Every error's name; a damaged file must end in one of them.
_KERNEL_API = (FIRMWARE / "kernels" / "kernel_api.hpp").read_text(encoding="utf-8")
STATUS_NAMES = frozenset(
    re.findall(r"^  (\w+),", _KERNEL_API.partition("enum class Status")[2], re.MULTILINE)
)
RUN_LIMIT_S = 20.0


@pytest.fixture(scope="module")
def interpreter(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(
        build_runner(shared_folder / "pte-host-runner"), tmp_path_factory.mktemp("interpreter")
    )


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
        pte.parse(program).plan().operators[instruction.op_index].full_name
        for instruction in pte.parse(program).plan().instructions
        if isinstance(instruction, pte.KernelCall)
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
        from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
        from executorch.exir.passes import MemoryPlanningPass

        def spread(alignment: int, specs: Any, *arguments: Any, **options: Any) -> Any:
            for number, spec in enumerate(
                sorted(specs, key=lambda spec: (tuple(spec.shape), str(spec.dtype)))
            ):
                spec.mem_id = 1 + number % 3
            return greedy(alignment, specs, *arguments, **options)

        planning = MemoryPlanningPass(MemoryPlanningAlgorithmSuite(algo_list=[spread]))
        program = bytes(
            edge_program({"forward": [case]})
            .to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
            .buffer
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
        from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

        class Counter(torch.nn.Module):
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
    case = _net_case()
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

        class Rows(torch.nn.Module):
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


def _two_additions(torch: Any, x: Any, y: Any) -> Any:
    return ((x + y) * 2 + y) * 3


def _stand_in(payload_byte: int, instruction: int, *inputs: Array) -> Array:
    """What the runner's delegate writes, after tests/recording_delegate.hpp, as float32."""
    total = sum(int(numpy.frombuffer(array.tobytes(), numpy.uint8).sum()) for array in inputs)
    count = inputs[0].nbytes
    values = (payload_byte + 3 * instruction + 5 * total + numpy.arange(count)) % 256
    return numpy.frombuffer(values.astype(numpy.uint8).tobytes(), numpy.float32)


@pytest.mark.parametrize("segments", [False, True])
def test_delegates(interpreter: Interpreter, segments: bool) -> None:
    """Two delegates among kernels, payloads inline or in segments: payloads, arguments and order are right."""
    x, y = floats(6), floats(6, seed=1)
    case = Case(_two_additions, (x, y))
    program = lower_with_delegates([case], segments=segments).replace(OWN_ID, ACCEPTED_ID)
    run = interpreter.run(program, "forward", [x, y], planned=[4096])
    assert run.status == "ok", run.reason
    for index in range(2):
        text = payload(index)
        assert f"delegate {index} payload {len(text)} bytes, sum {sum(text)}" in run.lines
    kinds = [line.split()[0] for line in run.instructions]
    assert kinds == ["delegate", "kernel", "delegate", "kernel"]
    first = _stand_in(payload(0)[0], 0, x, y) * numpy.float32(2)
    assert same_bits(run.outputs[0], _stand_in(payload(1)[0], 2, first, y) * numpy.float32(3))


def test_other_backends_are_refused(interpreter: Interpreter) -> None:
    case = Case(_two_additions, (floats(6), floats(6, seed=1)))
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


def _fuzz_programs(zoo_pte: ZooPte) -> dict[str, tuple[bytes, list[Array]]]:
    """Programs of every feature: constants, control flow, state, delegates in segments and inline, lists, IO."""
    branch = Case(_branches, (numpy.array(True), floats(6)), outputs=2)
    lists = Case(
        lambda torch, a, b: torch.cat([a.permute(1, 0), b.view(3, 2)], 1).mean(dim=(0,)),
        (floats(2, 3), floats(6)),
    )
    quantized = Case(_quantized_pool, (special_floats(128).reshape(1, 2, 8, 8),))
    added = Case(_two_additions, (floats(6), floats(6, seed=1)))
    net = _net_case()
    programs = {
        "net": (lower({"forward": [net]}), list(net.inputs)),
        "branch": (lower({"forward": [branch]}), list(branch.inputs)),
        "lists": (lower({"forward": [lists]}), list(lists.inputs)),
        "quantized": (lower({"forward": [quantized]}), list(quantized.inputs)),
        "delegates": (
            lower_with_delegates([added], segments=True).replace(OWN_ID, ACCEPTED_ID),
            list(added.inputs),
        ),
    }
    program = zoo_pte("ds_cnn").pte.read_bytes()
    inputs = [floats(*tensor.sizes) for tensor in pte.parse(program).plan().input_tensors()]
    return {**programs, "ds_cnn": (program, inputs)}


def _quantized_pool(torch: Any, x: Any) -> Any:
    twins = torch.ops.quantized_decomposed
    small = twins.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
    pooled = torch.nn.functional.max_pool2d(small, 2)
    return twins.dequantize_per_tensor(pooled, 0.05, 3, -128, 127, torch.int8)


def _planned(program: bytes) -> list[int]:
    try:
        return list(pte.parse(program).plan().non_const_buffer_sizes[1:])
    except InputError:  # the test backend's payloads are none of Vela's
        return [4096]


def _survives(interpreter: Interpreter, program: bytes, inputs: list[Array], planned: list[int]) -> Run:
    """Crashes, sanitizer reports and hangs fail inside of run(); what is left is a result or a named error."""
    run = interpreter.run(program, "forward", inputs, planned=planned, timeout_s=RUN_LIMIT_S)
    assert run.status in STATUS_NAMES
    assert run.status == "ok" or len(run.reason) > len("load: ")
    return run


def test_single_byte_damage(interpreter: Interpreter, zoo_pte: ZooPte) -> None:
    """One byte changed: never a crash or a hang under the address and undefined-behaviour sanitizers.

    A changed constant or size can be a valid program with another result, which only the model's digest can show;
    so the bytes of the result are compared only where the change is undone (the control at the end).
    """
    generator = random.Random(20260101)
    statuses: dict[str, int] = {}
    for program, inputs in _fuzz_programs(zoo_pte).values():
        planned = _planned(program)
        original = _survives(interpreter, program, inputs, planned)
        assert original.status == "ok", original.reason
        for _ in range(60):
            # Structure lies at the front of the file, and is what can mislead a reader.
            position = generator.randrange(min(len(program), 4096))
            damaged = bytearray(program)
            damaged[position] ^= generator.choice([0x01, 0x80, 0xFF, generator.randrange(1, 256)])
            run = _survives(interpreter, bytes(damaged), inputs, planned)
            statuses[run.status] = statuses.get(run.status, 0) + 1
        again = _survives(interpreter, program, inputs, planned)
        assert all(
            same_bits(found, first) for found, first in zip(again.outputs, original.outputs, strict=True)
        )
    assert sum(statuses.values()) == 360
    # The damage was felt: errors of several kinds, and not everything was refused.
    assert len(statuses) >= 4, statuses
    assert statuses["ok"] < 300, statuses


def test_truncation(interpreter: Interpreter, zoo_pte: ZooPte) -> None:
    """A file cut anywhere is refused, unless only padding behind its last byte is lost."""
    generator = random.Random(7)
    for program, inputs in _fuzz_programs(zoo_pte).values():
        planned = _planned(program)
        original = _survives(interpreter, program, inputs, planned)
        lengths = [
            0,
            1,
            7,
            8,
            39,
            40,
            len(program) - 1,
            *(generator.randrange(len(program)) for _ in range(12)),
        ]
        for length in lengths:
            run = _survives(interpreter, program[:length], inputs, planned)
            if run.status == "ok":
                assert all(same_bits(a, b) for a, b in zip(run.outputs, original.outputs, strict=True)), (
                    length
                )
            else:
                assert run.reason.startswith("load: "), run.reason


def _toolchain_preset(folder: Path) -> list[str]:
    return [f"-DCMAKE_TOOLCHAIN_FILE={FIRMWARE / 'cmake' / 'gnu-arm.cmake'}", "-DETHOSU_BOARD=corstone-300"]


@pytest.mark.toolchain
def test_cross_compiles_without_heap(tmp_path: Path) -> None:
    """The same sources for Cortex-M55, warnings as errors; nothing asks for a heap, exceptions, stdio or asserts."""
    configure_and_build(tmp_path, "ethosu_runtime", *_toolchain_preset(tmp_path))
    archives = [tmp_path / "runtime" / "libethosu_runtime.a", tmp_path / "kernels" / "libethosu_kernels.a"]
    listing = proc.run(["arm-none-eabi-nm", "--undefined-only", *map(str, archives)], timeout_s=60).output
    undefined = {line.split()[1] for line in listing.splitlines() if line.strip().startswith("U ")}
    assert "memcpy" in undefined  # the listing was read
    forbidden = re.compile(
        r"^(malloc|calloc|realloc|free|_Zn[wa]|_Zd[la]|__cxa_|_ZSt|abort|__assert|printf|puts|f?write|snprintf|exit)"
    )
    assert not [name for name in undefined if forbidden.match(name)]
    allowed = {
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "strcmp",
        "strncmp",
        "strlen",
        "exp",
        "expf",
        "nearbyintf",
    }
    libc = {
        name for name in undefined if not name.startswith(("_ZN10ethosu_sdk", "_ZNK10ethosu_sdk", "__aeabi_"))
    }
    assert libc <= allowed, libc - allowed
