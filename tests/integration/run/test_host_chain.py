"""The independent chain (tests/oracles/chain.py) and ExecuTorch's host runtime under it.

What the chain computes is compared with the quantised PyTorch model. That is a test of plausibility: PyTorch
simulates quantisation in floating point, and for deep models the two differ in the last bits.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base.errors import InputError, SimulationError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.simulate import host_runtime
from tests.conftest import ExpectedOutputs, ZooPte
from tests.oracles import chain
from tests.oracles.tosa import OracleError, TosaModel, tosa_model

pytestmark = pytest.mark.torch

Array = NDArray[Any]

MIXED = """
import torch
class Mixed(torch.nn.Module):
    '''Inputs that cannot be swapped, outputs in another order than they are computed.'''
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.conv = torch.nn.Conv2d(3, 6, 3, padding=1)
        self.fc = torch.nn.Linear(6 * 64, 4)
    def forward(self, x, y):
        a = torch.relu(self.conv(x) - 2 * torch.cat([y, y], 1))
        return self.fc(a.flatten(1)), a, x - y
generator = torch.Generator().manual_seed(1)
example_inputs = tuple(torch.randn(1, 3, 8, 8, generator=generator) for _ in range(2))
def last():
    return Mixed(), tuple(item.to(memory_format=torch.channels_last) for item in example_inputs)
"""


def stored(output: CompileOutput, kind: str) -> list[Array]:
    with np.load(output.io) as arrays:
        return [
            arrays[f"{kind}{index}"] for index in range(sum(name.startswith(kind) for name in arrays.files))
        ]


@pytest.mark.parametrize("name", ["add", "digits_cnn", "ds_cnn"])
def test_small_models_equal_pytorch(zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, name: str) -> None:
    output = zoo_pte(name)
    results = expected_outputs(output, stored(output, "input"))
    for result, reference in zip(results, stored(output, "output"), strict=True):
        np.testing.assert_array_equal(result, reference, strict=True)
        assert np.unique(result).size > 2


def test_softmax_equals_pytorch_closely(zoo_pte: ZooPte, expected_outputs: ExpectedOutputs) -> None:
    output = zoo_pte("softmax")
    (result,) = expected_outputs(output, stored(output, "input"))
    np.testing.assert_allclose(result, stored(output, "output")[0], rtol=0, atol=1e-7)


def test_mobilenet_v2_is_near_pytorch(zoo_pte: ZooPte, expected_outputs: ExpectedOutputs) -> None:
    output = zoo_pte("mobilenet_v2")
    (result,) = expected_outputs(output, stored(output, "input"))
    (reference,) = stored(output, "output")
    assert np.corrcoef(result.ravel(), reference.ravel())[0, 1] > 0.99
    assert int(result.argmax()) == int(reference.argmax())
    assert np.unique(result).size > 50  # not stuck at the ends of its range


def test_digits_accuracy(zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel) -> None:
    images, labels = zoo.digits.held_back()
    output = zoo_pte("digits_cnn")
    with chain.open_chain(host_runner, output.pte, chain.tosa_by_payload(output), tosa) as runtime:
        scores = [runtime.run([image[None]])[0] for image in images]
    accuracy = float((np.concatenate(scores).argmax(axis=1) == labels).mean())
    assert accuracy > 0.95


@pytest.mark.parametrize(("entry", "dim_order"), [("Mixed", (0, 1, 2, 3)), ("last", (0, 2, 3, 1))])
def test_order_of_inputs_and_outputs_and_memory_formats(
    tmp_path: Path, expected_outputs: ExpectedOutputs, entry: str, dim_order: tuple[int, ...]
) -> None:
    path = tmp_path / "mixed.py"
    path.write_text(MIXED)
    output = compile_model(CompileRequest(f"{path}:{entry}", parse_target("ethos-u55-128"), tmp_path / "out"))
    assert len(output.delegates) == 1
    assert [row.dim_order for row in output.inputs] == [dim_order] * 2
    inputs = stored(output, "input")
    results = expected_outputs(output, inputs)
    assert [result.shape for result in results] == [(1, 4), (1, 6, 8, 8), (1, 3, 8, 8)]
    for result, reference in zip(results, stored(output, "output"), strict=True):
        np.testing.assert_array_equal(result, reference, strict=True)
    swapped = expected_outputs(output, inputs[::-1])
    assert not np.array_equal(swapped[2], results[2])


@pytest.mark.parametrize(
    ("name", "target", "delegates"),
    [("ds_cnn", "ethos-u85-256", 1), ("digits_cnn", "ethos-u85-256", 1), ("ds_cnn", "ethos-u65-256", 2)],
)
def test_other_families(
    zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, name: str, target: str, delegates: int
) -> None:
    output = zoo_pte(name, target=target)
    assert len(output.delegates) == delegates
    # Dedicated_Sram_384KB, the default of Ethos-U65 and Ethos-U85, stages feature maps in fast memory.
    assert output.delegates[0].fast_scratch_bytes > 0
    (result,) = expected_outputs(output, stored(output, "input"))
    np.testing.assert_array_equal(result, stored(output, "output")[0], strict=True)


def test_repeated_runs_do_not_depend_on_each_other(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel
) -> None:
    # ExecuTorch plans inputs and later tensors into the same memory, so a stale input would show.
    output = zoo_pte("ds_cnn")
    first = stored(output, "input")
    second = [-array for array in first]
    with chain.open_chain(host_runner, output.pte, chain.tosa_by_payload(output), tosa) as runtime:
        results = [runtime.run(inputs)[0] for inputs in (first, second, first)]
    np.testing.assert_array_equal(results[0], results[2])
    assert not np.array_equal(results[0], results[1])


def test_delegates_are_not_mixed_up(zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel) -> None:
    output = zoo_pte("ds_cnn")
    flatbuffers = chain.tosa_by_payload(output)
    swapped = dict(zip(flatbuffers, reversed(flatbuffers.values()), strict=True))
    with (
        pytest.raises(OracleError),
        chain.open_chain(host_runner, output.pte, swapped, tosa) as runtime,
    ):
        runtime.run(stored(output, "input"))
    with (
        pytest.raises(OracleError, match="no TOSA flatbuffer"),
        chain.open_chain(host_runner, output.pte, {}, tosa) as runtime,
    ):
        runtime.run(stored(output, "input"))


def test_what_the_delegate_returns_is_what_the_program_gets(zoo_pte: ZooPte, host_runner: Path) -> None:
    output = zoo_pte("add")
    calls: list[host_runtime.DelegateCall] = []

    def delegate(call: host_runtime.DelegateCall) -> Sequence[Array]:
        calls.append(call)
        return [np.arange(5, dtype=np.int32) - 70000]

    given = np.array([1, -2, 3, -4, 2**31 - 1], np.int32)
    (result,) = host_runtime.run_pte(host_runner, output.pte, [given], delegate)
    np.testing.assert_array_equal(result, np.arange(5, dtype=np.int32) - 70000, strict=True)
    (call,) = calls
    np.testing.assert_array_equal(call.inputs[0], given)
    assert (call.index, call.payload_sha256) == (0, output.delegates[0].payload_sha256)


def test_delegate_that_returns_too_little(zoo_pte: ZooPte, host_runner: Path) -> None:
    output = zoo_pte("add")
    with pytest.raises(
        SimulationError, match=r"returned outputs of \[16\] bytes, but the program has \[20\]"
    ):
        host_runtime.run_pte(
            host_runner, output.pte, [np.zeros(5, np.int32)], lambda call: [np.zeros(4, np.int32)]
        )


def test_program_with_a_delegate_and_nothing_to_execute_it(zoo_pte: ZooPte, host_runner: Path) -> None:
    with pytest.raises(SimulationError, match="nothing was given to execute it"):
        host_runtime.run_pte(host_runner, zoo_pte("add").pte, [np.zeros(5, np.int32)])


@pytest.mark.parametrize(
    "inputs",
    [[], [np.zeros((4, 10))], [np.zeros((10, 4), np.float32)], [np.zeros((4, 10), np.float32)] * 2],
    ids=["none", "dtype", "shape", "too many"],
)
def test_wrong_inputs(zoo_pte: ZooPte, host_runner: Path, inputs: list[Array]) -> None:
    with pytest.raises(InputError):
        host_runtime.run_pte(host_runner, zoo_pte("softmax").pte, inputs)


def test_damaged_programs(zoo_pte: ZooPte, host_runner: Path, tmp_path: Path) -> None:
    data = zoo_pte("softmax").pte.read_bytes()
    for name, content in {"cut": data[:400], "empty": b"", "other": b"no program" * 50}.items():
        path = tmp_path / f"{name}.pte"
        path.write_bytes(content)
        with pytest.raises(SimulationError, match="host runtime"):
            host_runtime.run_pte(host_runner, path, [np.zeros((4, 10), np.float32)])
    with pytest.raises(InputError, match="there is no file"):
        host_runtime.run_pte(host_runner, tmp_path / "absent.pte", [])


def test_silent_runtime(zoo_pte: ZooPte, tmp_path: Path) -> None:
    runner = tmp_path / "sleeper"
    runner.write_text("#!/bin/sh\nsleep 600\n")
    runner.chmod(0o755)
    with (
        pytest.raises(SimulationError, match=r"silent for 0\.5 s"),
        host_runtime.open_pte(runner, zoo_pte("softmax").pte, timeout_s=0.5),
    ):
        pass


def test_runtime_that_dies(zoo_pte: ZooPte, tmp_path: Path) -> None:
    runner = tmp_path / "dies"
    runner.write_text("#!/bin/sh\necho last words\nexit 3\n")
    runner.chmod(0o755)
    with (
        pytest.raises(SimulationError, match="ended during loading") as caught,
        host_runtime.open_pte(runner, zoo_pte("softmax").pte),
    ):
        pass
    assert "last words" in caught.value.hint


def test_the_reference_model_survives_a_refusal(zoo_pte: ZooPte) -> None:
    output = zoo_pte("add")
    (graph,) = chain.tosa_by_payload(output).values()
    with tosa_model() as model:
        with pytest.raises(OracleError, match="takes 1 inputs, 2 given"):
            model.run(graph, [np.zeros(5, np.int32)] * 2)
        # x + x leaves int32: TOSA calls that unpredictable, so there is no expected value.
        with pytest.raises(OracleError, match="UNPREDICTABLE"):
            model.run(graph, [np.full(5, 2**31 - 1, np.int32)])
        (result,) = model.run(graph, [np.arange(5, dtype=np.int32)])
    np.testing.assert_array_equal(result, 2 * np.arange(5))
