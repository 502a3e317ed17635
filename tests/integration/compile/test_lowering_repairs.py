"""Activations, outputs and weights that the tools lose are there: in TOSA graphs, and in what programs compute.

Expected values come from the independent chain (TOSA reference model and ExecuTorch's C++ runtime) and from the
quantised PyTorch model; the faults themselves are shown with the repairs left out.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.base import cache, npz
from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.compile_facts import CompileOutput
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards import HazardKind, check
from ethosu_sdk.program import pte
from ethosu_sdk.simulate import host_runtime
from tests import warm
from tests.conftest import ExpectedOutputs, KeptFolder
from tests.integration.cli import sdk, sdk_ok
from tests.integration.compile import repairs_child
from tests.integration.compile.repairs_child import (
    BATCHED,
    CRASHING,
    HALVED,
    INT16,
    LARGER,
    LOST,
    REPAIRED,
    TABLES,
    TABLES_INT16,
    UNSEEN,
    UNTOUCHED,
    Compilation,
)
from tests.records import read

pytestmark = pytest.mark.torch

Array = NDArray[Any]
ACTIVATIONS_OF_SHARING = 4
# A ReLU that is gone costs nearly all of it; rounding in float and in integers costs less than one of 256 steps.
NEAR_DB, FAR_DB = 40.0, 15.0


@pytest.fixture(scope="module")
def folder(kept_folder: KeptFolder) -> Path:
    """Everything of repairs_child.py, compiled."""

    def make(folder: Path) -> None:
        warm.python("-m", repairs_child.__name__, folder, timeout_s=3000)

    return kept_folder("repairs", make, *Path(repairs_child.__file__).parent.rglob("*.py"))


def facts(folder: Path, case: Compilation) -> Any:
    return read(folder / case.name / "facts.json")


def stored(output: CompileOutput, kind: str) -> list[Array]:
    arrays = npz.read_npz(output.io)
    return [arrays[f"{kind}{index}"] for index in range(sum(name.startswith(kind) for name in arrays))]


def distance_db(reference: Array, candidate: Array) -> float:
    error = np.linalg.norm(candidate.astype(np.float64) - reference)
    return float("inf") if error == 0 else float(20 * np.log10(np.linalg.norm(reference) / error))


@pytest.mark.parametrize(
    "case",
    [*REPAIRED, *BATCHED, *INT16, *TABLES, TABLES_INT16, *LARGER, CRASHING],
    ids=lambda case: case.name,
)
def test_values(
    folder: Path, case: Compilation, host_runner: Path, expected_outputs: ExpectedOutputs
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, case))
    inputs = stored(output, "input")
    expected = expected_outputs(output, inputs)
    with host_runtime.open_pte(
        host_runner, output.pte, lambda call: npu.run(call.payload, call.inputs).outputs
    ) as runtime:
        results = runtime.run(inputs)
    quantised = stored(output, "output")
    assert len(results) == len(expected) == len(quantised)
    for index, (result, oracle, eager) in enumerate(zip(results, expected, quantised, strict=True)):
        np.testing.assert_array_equal(result, oracle, strict=True)
        assert distance_db(eager, result) > NEAR_DB, f"output {index}"


@pytest.mark.parametrize(
    "case", [case for case in REPAIRED if case.model == "sharing"], ids=lambda case: case.name
)
def test_each_activation_is_in_the_graph(
    folder: Path, case: Compilation, expected_outputs: ExpectedOutputs
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, case))
    assert sum(clamps(output)) == ACTIVATIONS_OF_SHARING
    results = expected_outputs(output, stored(output, "input"))
    for result, eager in zip(results, stored(output, "output"), strict=True):
        assert distance_db(eager, result) > NEAR_DB


def test_without_the_repair_activations_are_gone(folder: Path, expected_outputs: ExpectedOutputs) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, UNTOUCHED[0]))
    assert sum(clamps(output)) == 0
    results = expected_outputs(output, stored(output, "input"))
    for result, eager in zip(results, stored(output, "output"), strict=True):
        assert distance_db(eager, result) < FAR_DB
        assert (result < 0).sum() > (eager < 0).sum()


def test_without_the_repair_a_returned_input_is_refused(folder: Path) -> None:
    assert "Vela refused" in facts(folder, UNTOUCHED[1])["message"]


@pytest.mark.parametrize(
    "case", [case for case in REPAIRED if case.model == "negations"], ids=lambda case: case.name
)
def test_negations_of_every_integer(
    folder: Path, case: Compilation, host_runner: Path, expected_outputs: ExpectedOutputs
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, case))
    (given,) = stored(output, "input")
    # The first negation reads the model's input as it is stored, with the range of three times its values.
    beyond = 4 * np.abs(given).max()
    grid = np.linspace(-beyond, beyond, given.size, dtype=given.dtype).reshape(given.shape)
    seen: list[Array] = []

    def execute(call: host_runtime.DelegateCall) -> list[Array]:
        seen.extend(call.inputs)
        return npu.run(call.payload, call.inputs).outputs

    with host_runtime.open_pte(host_runner, output.pte, execute) as runtime:
        results = runtime.run([grid])
    assert set(np.unique(np.concatenate([array.ravel() for array in seen]))) == set(range(-128, 128))
    for result, oracle in zip(results, expected_outputs(output, [grid]), strict=True):
        np.testing.assert_array_equal(result, oracle, strict=True)
    negated, step = results[0], np.diff(np.unique(results[0])).max()
    inside = (-grid > negated.min()) & (-grid < negated.max())
    assert inside.any()
    assert np.abs(negated + grid)[inside].max() <= 2 * step


@pytest.mark.parametrize("case", UNTOUCHED[2:], ids=lambda case: case.name)
def test_without_the_repair_results_have_the_wrong_scale(
    folder: Path, case: Compilation, expected_outputs: ExpectedOutputs
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, case))
    results = expected_outputs(output, stored(output, "input"))
    pairs = zip(results, stored(output, "output"), strict=True)
    assert min(distance_db(eager, result) for result, eager in pairs) < NEAR_DB / 2


def hazards(output: CompileOutput) -> list[HazardKind]:
    """What the streams of a program do too early."""
    blocks = [delegate.vela for plan in pte.read(output.pte).plans for delegate in plan.delegates]
    assert blocks
    return [
        hazard.kind
        for vela in blocks
        if vela is not None
        for hazard in check(bytes(vela.command_stream), NpuConfig.from_word(vela.config_word))
    ]


@pytest.mark.parametrize("case", [*TABLES, TABLES_INT16, *LARGER], ids=lambda case: case.name)
def test_every_table_is_loaded_when_it_is_used(folder: Path, case: Compilation) -> None:
    assert not hazards(compile_facts.from_json(CompileOutput, facts(folder, case)))


@pytest.mark.parametrize("case", LOST, ids=lambda case: case.name)
def test_a_lost_table_is_refused_by_name(folder: Path, case: Compilation) -> None:
    error = facts(folder, case)
    assert (error["class"], error["exit_code"]) == ("InputError", 3)
    assert "Vela loses a look-up table of delegate 0, and results on ethos-u55-64" in error["message"]
    assert "repaired_models.py, line " in error["message"]
    assert "--no-delegate" in error["hint"]
    assert not (folder / case.name / "repaired_models.pte").exists()


def test_a_repair_that_changes_values_shows(folder: Path) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, HALVED))
    results = run_on_the_model(output)
    near = [
        distance_db(eager, result) > NEAR_DB
        for result, eager in zip(results, stored(output, "output"), strict=True)
    ]
    assert near == [True, True, False, False, True, False]  # what reads the table that is used again


def run_on_the_model(output: CompileOutput) -> list[Array]:
    runner = host_runtime.build_runner(cache.directory(host_runtime.CACHE_PART))
    with host_runtime.open_pte(
        runner, output.pte, lambda call: npu.run(call.payload, call.inputs).outputs
    ) as runtime:
        return runtime.run(stored(output, "input"))


@pytest.mark.parametrize("words", [["build"], ["run"], ["run", "--simulator", "host"]], ids=" ".join)
def test_a_program_that_others_compiled_is_refused_by_name(
    words: list[str], folder: Path, tmp_path: Path
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, UNSEEN))
    assert {HazardKind.LUT_BEYOND_MEMORY, HazardKind.LUT_NOT_LOADED} <= set(hazards(output))
    program = tmp_path / "theirs.pte"
    program.write_bytes(output.pte.read_bytes())
    done = sdk(*words, program, "-o", tmp_path / "out", cwd=tmp_path)
    assert done.code == 3, done.err
    assert "cannot run on ethos-u55-64: look-up table loaded beyond the NPU's own memory" in done.err
    assert "`ethosu-sdk compile` avoids it" in done.err
    assert "Traceback" not in done.err


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("case", "options"),
    [(REPAIRED[-2], []), (TABLES[0], []), (TABLES[1], []), (TABLES[1], ["--simulator", "host"])],
    ids=lambda value: value.name if isinstance(value, Compilation) else "-".join(value),
)
def test_firmware_gives_every_output(
    case: Compilation,
    options: list[str],
    folder: Path,
    tmp_path: Path,
    expected_outputs: ExpectedOutputs,
) -> None:
    output = compile_facts.from_json(CompileOutput, facts(folder, case))
    done = sdk_ok("run", output.pte, "-o", tmp_path / "run", *options, cwd=tmp_path)
    assert "hazard" not in done.err
    results = npz.read_npz(tmp_path / "run" / "outputs.npz")
    for index, oracle in enumerate(expected_outputs(output, stored(output, "input"))):
        np.testing.assert_array_equal(results[f"output{index}"], oracle, strict=True)


def clamps(output: CompileOutput) -> list[int]:
    """How many CLAMP operators each delegate's TOSA graph has."""
    graphs = [
        tosa_graph.read_operators((output.pte.parent / row.files.tosa).read_bytes())
        for row in output.delegates
    ]
    return [sum(operator.name == "CLAMP" for operator in graph) for graph in graphs]
