"""The main job against the independent chain: firmware on the simulated boards equals TOSA and ExecuTorch.

Expected values come from ExecuTorch's host runtime for CPU operators and the TOSA reference model for delegates;
nothing of the SDK's NPU model, firmware or simulator takes part in them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ethosu_sdk import npu
from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.compile import zoo
from ethosu_sdk.program import pte
from ethosu_sdk.records import provenance, validation
from tests import own_qemu
from tests.conftest import DEFAULT_TARGET, ExpectedOutputs, ZooPte
from tests.integration.cli import Outcome, assert_clear, sdk
from tests.oracles import chain
from tests.oracles.tosa import TosaModel

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
MODELS = zoo.stateless()
INFERENCES = 3
_ADD_LIMIT = 1 << 30  # TOSA calls an int32 sum that overflows unpredictable


@dataclass(frozen=True)
class Board:
    """A board, a target that it carries, and the environment in which its QEMU is found."""

    name: str
    target: str
    environment: dict[str, str]

    def run(self, program: Path, folder: Path, *options: str | Path) -> tuple[Outcome, dict[str, Any]]:
        on = ("--simulator", "qemu", "--board", self.name)
        return run(program, folder, *on, *options, env=self.environment)


@pytest.fixture(params=["corstone-300", "corstone-320"])
def board(request: pytest.FixtureRequest) -> Board:
    targets = {"corstone-300": DEFAULT_TARGET, "corstone-320": "ethos-u85-256"}
    return Board(request.param, targets[request.param], own_qemu.environment(request.param, request))


def random_inputs(program: pte.Pte, seed: int) -> list[npt.NDArray[Any]]:
    """INFERENCES stacked random inputs per model input, over a wide range."""
    generator = np.random.default_rng(seed)
    arrays: list[npt.NDArray[Any]] = []
    for tensor in program.plan("forward").input_tensors():
        shape = (INFERENCES, *tensor.sizes)
        if tensor.dtype == "int32":
            arrays.append(generator.integers(-_ADD_LIMIT, _ADD_LIMIT, shape, dtype=np.int32))
        else:
            arrays.append(generator.normal(0, 2, shape).astype(np.float32))
    return arrays


def run(
    compiled_pte: Path, folder: Path, *options: str | Path, env: dict[str, str] | None = None
) -> tuple[Outcome, dict[str, Any]]:
    outcome = sdk("run", compiled_pte, "-o", folder / "out", "--json", *options, cwd=folder, env=env or {})
    record = json.loads(outcome.out) if outcome.out else {}
    assert not record or validation.record_problems(record) == []
    return outcome, record


@pytest.mark.parametrize(
    ("board", "name"),
    [
        *(("corstone-300", name) for name in MODELS),
        ("corstone-320", "digits_cnn"),
        ("corstone-320", "ds_cnn"),
    ],
    indirect=["board"],
)
def test_every_zoo_model_equals_the_independent_chain(
    board: Board, name: str, zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, tmp_path: Path
) -> None:
    compiled = zoo_pte(name, board.target)
    inputs = random_inputs(pte.read(compiled.pte), seed=len(name))
    rows = [expected_outputs(compiled, [array[i] for array in inputs]) for i in range(INFERENCES)]
    expected = [np.stack(column) for column in zip(*rows, strict=True)]
    npz.write_npz(tmp_path / "in.npz", {f"input{i}": array for i, array in enumerate(inputs)})
    npz.write_npz(tmp_path / "want.npz", {f"output{i}": array for i, array in enumerate(expected)})
    found = {}
    given = ("--inputs", tmp_path / "in.npz", "--expect", tmp_path / "want.npz")
    for simulator in ("qemu", "host"):
        if simulator == "qemu":
            outcome, record = board.run(compiled.pte, tmp_path, *given)
        else:
            outcome, record = run(compiled.pte, tmp_path, "--simulator", simulator, *given)
        assert outcome.code == 0, outcome.err
        assert record["status"] == "pass"
        assert record["inferences"] == INFERENCES
        assert record["simulator"]["name"] == simulator
        got = np.load(tmp_path / "out" / "outputs.npz")
        for index, want in enumerate(expected):
            np.testing.assert_array_equal(got[f"output{index}"], want, strict=True)
            assert np.unique(want).size > 2, "an output that hardly varies proves little"
        found[simulator] = record
    assert found["host"].get("npu") == found["qemu"].get("npu")


def test_ds_cnn_runs_two_delegates_with_a_cpu_pool_between(zoo_pte: ZooPte, tmp_path: Path) -> None:
    outcome, record = run(zoo_pte("ds_cnn").pte, tmp_path)
    assert outcome.code == 0, outcome.err
    order = [(row["kind"], row["name"]) for row in record["operators"]]
    delegates = [place for place, (kind, _) in enumerate(order) if kind == "delegate"]
    pool = order.index(("kernel", "aten::avg_pool2d.out"))
    assert len(delegates) == 2
    assert delegates[0] < pool < delegates[1]
    assert record["npu"]["delegate_calls"] == 2
    cycles = [row["npu_cycles"]["value"] for row in record["operators"] if row["kind"] == "delegate"]
    assert sum(cycles) == record["npu"]["cycles"]["value"]
    assert all(value > 0 for value in cycles)


def test_digits_predictions_equal_the_tosa_models(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel, tmp_path: Path
) -> None:
    compiled = zoo_pte("digits_cnn")
    images, labels = zoo.digits.held_back()
    with chain.open_chain(host_runner, compiled.pte, chain.tosa_by_payload(compiled), tosa) as runtime:
        expected = np.stack([runtime.run([image[None]])[0] for image in images])
    npz.write_npz(tmp_path / "in.npz", {"input0": images[:, None]})
    outcome, record = run(compiled.pte, tmp_path, "--inputs", tmp_path / "in.npz")
    assert outcome.code == 0, outcome.err
    got = np.load(tmp_path / "out" / "outputs.npz")["output0"]
    np.testing.assert_array_equal(got, expected, strict=True)
    predictions = got.reshape(len(labels), -1).argmax(axis=1)
    reference = expected.reshape(len(labels), -1).argmax(axis=1)
    np.testing.assert_array_equal(predictions, reference)
    assert (predictions == labels).mean() > 0.95
    assert record["inferences"] == len(labels)


def test_two_runs_differ_in_time_and_host_only(board: Board, zoo_pte: ZooPte, tmp_path: Path) -> None:
    pair = []
    for name in ("a", "b"):
        folder = filesystem.make_directory(tmp_path / name)
        outcome, record = board.run(zoo_pte("digits_cnn", board.target).pte, folder)
        assert outcome.code == 0, outcome.err
        assert record["board"] == board.name
        pair.append(provenance.comparable(record))
    assert pair[0] == pair[1]


def test_a_wrong_expectation_is_exit_code_7_and_named(board: Board, zoo_pte: ZooPte, tmp_path: Path) -> None:
    compiled = zoo_pte("digits_cnn", board.target)
    outcome, _ = board.run(compiled.pte, tmp_path)
    assert outcome.code == 0
    outputs = dict(np.load(tmp_path / "out" / "outputs.npz"))
    outputs["output0"] = outputs["output0"].copy()
    outputs["output0"][0, 3] = np.nextafter(outputs["output0"][0, 3], np.float32(np.inf))
    npz.write_npz(tmp_path / "want.npz", outputs)
    outcome, record = board.run(compiled.pte, tmp_path, "--expect", tmp_path / "want.npz")
    assert outcome.code == 7
    assert record["status"] == "fail"
    assert "1 of 10 elements differ" in outcome.err
    assert "first at [0, 3]" in outcome.err
    tolerant, record = board.run(compiled.pte, tmp_path, "--expect", tmp_path / "want.npz", "--atol", "0.001")
    assert tolerant.code == 0
    assert record["status"] == "pass"


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"input0": np.zeros((1, 1, 8, 9), np.float32)}, "shape"),
        ({"input0": np.zeros((1, 1, 8, 8), np.float64)}, "float64"),
        ({"input0": np.zeros((1, 1, 8, 8), np.int8)}, "int8"),
        ({"x": np.zeros((1, 1, 8, 8), np.float32)}, "input0"),
        ({}, "input0"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    arrays: dict[str, npt.NDArray[Any]], word: str, zoo_pte: ZooPte, tmp_path: Path
) -> None:
    npz.write_npz(tmp_path / "in.npz", arrays)
    words = ("run", zoo_pte("digits_cnn").pte, "-o", "out", "--inputs", "in.npz")
    assert_clear(sdk(*words, cwd=tmp_path), 3, word)
    assert not (tmp_path / "out" / "run.json").exists()


def test_events_are_chosen_by_name_and_the_unknowable_is_said(zoo_pte: ZooPte, tmp_path: Path) -> None:
    stalls = ("MAC_STALLED_BY_WD", "MAC_STALLED_BY_ACC", "MAC_STALLED_BY_IB")
    events = ",".join(("MAC_ACTIVE", "CYCLE", "AXI_LATENCY_ANY", "NPU_ACTIVE", *stalls))
    outcome, record = run(zoo_pte("digits_cnn").pte, tmp_path, "--events", events)
    assert outcome.code == 0, outcome.err
    values = {row["event"]: row["value"] for row in record["npu"]["counters"]}
    assert values.keys() == {"MAC_ACTIVE", "CYCLE", "NPU_ACTIVE", *stalls}
    assert all(values[name] > 0 for name in stalls)
    assert values["MAC_ACTIVE"] + sum(values[name] for name in stalls) < values["CYCLE"]
    assert values["CYCLE"] == record["npu"]["cycles"]["value"]
    assert 0 < values["MAC_ACTIVE"] < values["CYCLE"]
    assert "/npu/counters/AXI_LATENCY_ANY" in {row["path"] for row in record["unavailable"]}


def test_cycles_are_those_of_the_command_stream_and_near_velas(zoo_pte: ZooPte, tmp_path: Path) -> None:
    """How near the model is to published runs, campaigns/fidelity tells; here Vela's figure is another opinion."""
    compiled = zoo_pte("mobilenet_v2")
    outcome, record = run(compiled.pte, tmp_path, "--simulator", "host")
    assert outcome.code == 0, outcome.err
    (delegate,) = compiled.delegates
    (payload,) = (row.payload for row in pte.read(compiled.pte).plan("forward").delegates)
    image = np.zeros((1, 3, 224, 224), np.int8)
    assert record["npu"]["cycles"]["source"] == "modelled"
    assert record["npu"]["cycles"]["value"] == npu.run(payload, [image]).counters.total_cycles
    assert record["npu"]["cycles"]["value"] == pytest.approx(delegate.estimates[0].value, rel=0.3)
