"""`compile --evaluate`: its figures against computations that share nothing with it, and that damage shows.

Labels come from scikit-learn, float outputs from PyTorch in a process of the test, executed outputs from `run`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial import distance
from sklearn import metrics

from ethosu_sdk.base import filesystem, json_text, npz
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import compile_facts, zoo
from ethosu_sdk.compile.compile_facts import (
    CompileRequest,
    EvaluatedOutput,
    EvaluationFacts,
    EvaluationRequest,
    Quantisation,
)
from ethosu_sdk.compile.evaluation import measure
from ethosu_sdk.compile.thresholds import PairResult
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.program import pte
from ethosu_sdk.records import validation
from tests.conftest import ZooPte
from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.integration.compile.sources import TWO_INPUTS
from tests.integration.zoo.process import float_outputs

pytestmark = pytest.mark.torch

Array = npt.NDArray[Any]
SAMPLES = 300
FIRST_CHANNELS = 16
SCALES_BYTES = 10  # of one channel before its weights: 40-bit bias, 32-bit multiplier, shift


def digits() -> tuple[Array, Array]:
    images, labels = zoo.digits.held_back()
    return images[:SAMPLES], labels[:SAMPLES]


def compiled(folder: Path, model: str | Path, *options: str | Path) -> tuple[Outcome, dict[str, Any]]:
    """How `compile --json` ended, and its record."""
    outcome = sdk("compile", model, "-o", folder, "--json", *options, cwd=folder.parent)
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    return outcome, record


def pair(record: dict[str, Any], reference: str, candidate: str, output: int = 0) -> dict[str, Any]:
    (found,) = (
        row
        for row in record["accuracy"]["pairs"]
        if (row["reference"], row["candidate"], row["output"]) == (reference, candidate, output)
    )
    assert isinstance(found, dict)
    return found


def executed(program: Path, folder: Path, **inputs: Array) -> dict[str, Array]:
    """The outputs of `run --simulator host`, with samples on a leading axis."""
    npz.write_npz(folder / "run-in.npz", inputs)
    options = ("--inputs", folder / "run-in.npz", "-o", folder / "run")
    sdk_ok("run", program, "--simulator", "host", *options, cwd=folder)
    return dict(np.load(folder / "run" / "outputs.npz"))


def check_distances(found: dict[str, Any], reference: Array, candidate: Array) -> None:
    """`found` has the figures that the arrays give, by other formulas than its own."""
    left, right = (array.astype(np.float64).ravel() for array in (reference, candidate))
    error = np.linalg.norm(right - left)
    assert found["elements"] == left.size
    assert found["sqnr_db"] == pytest.approx(20 * np.log10(np.linalg.norm(left) / error), abs=1e-6)
    assert found["cosine"] == pytest.approx(1 - distance.cosine(left, right), abs=1e-9)
    assert found["max_abs_error"] == pytest.approx(metrics.max_error(left, right), rel=1e-9)


def test_figures_are_those_of_independent_computations(tmp_path: Path) -> None:
    images, labels = digits()
    np.savez(tmp_path / "digits.npz", input0=images, labels=labels)
    limits = ("--min-top1", "0.95", "--max-top1-drop", "0.02", "--min-sqnr", "25", "--min-cosine", "0.99")
    outcome, record = compiled(
        tmp_path / "out", "zoo:digits_cnn", "--evaluate", tmp_path / "digits.npz", *limits, "--max-error", "5"
    )
    assert outcome.code == 0, outcome.err
    assert json_text.read_json(tmp_path / "out" / "digits_cnn.compile.json") == record
    accuracy = record["accuracy"]
    assert accuracy["data"]["samples"] == SAMPLES
    assert [row["status"] for row in accuracy["verdict"]["checks"]] == ["pass"] * 5
    assert not list((tmp_path / "out").glob(".evaluation-*"))

    got = executed(tmp_path / "out" / "digits_cnn.pte", tmp_path, input0=images[:, None])["output0"][:, 0]
    in_float = float_outputs("digits_cnn", images[:, None], tmp_path)[0].reshape(got.shape)
    for name, outputs in (("float", in_float), ("executed", got)):
        top1 = pair(record, "labels", name)["top1"]
        assert top1["share"] == pytest.approx(
            metrics.accuracy_score(labels, outputs.argmax(axis=1)), abs=1e-12
        )
    found = pair(record, "float", "executed")
    agreement = metrics.accuracy_score(in_float.argmax(axis=1), got.argmax(axis=1))
    assert found["top1"]["share"] == pytest.approx(agreement, abs=1e-12)
    check_distances(found, in_float, got)

    scale = accuracy["outputs"][0]["quantisation"]["scale"]
    steps = np.rint(got / scale)
    np.testing.assert_allclose(steps * scale, got, rtol=1e-6, err_msg="outputs are whole steps")
    assert np.gcd.reduce(steps.astype(np.int64).ravel()) == 1, (
        "and the step is not a fraction of the real one"
    )
    values, counts = np.unique(np.rint((got.astype(np.float64) - in_float) / scale), return_counts=True)
    histogram = {row["difference"]: row["elements"] for row in found["lsb_histogram"]["counts"]}
    assert histogram == dict(zip(values.astype(int).tolist(), counts.tolist(), strict=True))


def test_wrong_calibration_misses_thresholds_and_is_told_from_rounding(tmp_path: Path) -> None:
    images, labels = digits()
    np.savez(tmp_path / "digits.npz", input0=images[:100], labels=labels[:100])
    np.savez(tmp_path / "dark.npz", input0=images[:20] / 50)
    outcome, record = compiled(
        tmp_path / "out",
        "zoo:digits_cnn",
        *("--calibration", tmp_path / "dark.npz", "--evaluate", tmp_path / "digits.npz"),
        *("--min-top1", "0.9", "--min-sqnr", "20", "--min-top1", "labels-float=0.9"),
        *("--min-sqnr", "quantised-executed=20", "--max-top1-drop", "0.1"),
    )
    assert outcome.code == 7
    assert record["status"] == "fail"
    assert json_text.read_json(tmp_path / "out" / "digits_cnn.compile.json") == record
    program = tmp_path / "out" / "digits_cnn.pte"
    assert record["model"]["sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()
    for words in (
        "top-1, labels → executed, output 0: ",
        "at least 0.9 (--min-top1)",
        "SQNR, float → executed, output 0: ",
        "at least 20 dB (--min-sqnr)",
        "drop of top-1, float → executed against labels, output 0: ",
    ):
        assert words in outcome.err
    missed = [row["name"] for row in record["accuracy"]["verdict"]["checks"] if row["status"] == "fail"]
    assert not [name for name in missed if "labels → float" in name or "quantised → executed" in name]
    assert pair(record, "float", "quantised")["sqnr_db"] < 20


def facts(samples: int) -> EvaluationFacts:
    output = EvaluatedOutput((1, 10), "float32", (1, 10), Quantisation(0.1, 0, "int8"), "")
    return EvaluationFacts(samples, {}, (output,), (0,), False, 0)


def damaged(program: Path) -> bytes:
    """The program with the first layer's outputs shifted one bit too far, in every channel."""
    data = bytearray(program.read_bytes())
    (delegate,) = pte.parse(bytes(data)).plan("forward").delegates
    start = bytes(data).index(bytes(vela_blocks.parse(delegate.payload).weights))
    for channel in range(FIRST_CHANNELS):
        data[start + SCALES_BYTES * channel + SCALES_BYTES - 1] += 1
    return bytes(data)


def figures(rows: list[PairResult]) -> dict[str, float]:
    found = {
        f"{row.reference} {row.candidate} {name}": row.figure(name)
        for row in rows
        for name in ("top1", "sqnr_db")
    }
    return {name: value[0] for name, value in found.items() if value is not None}


def test_a_damaged_program_shows_between_quantised_and_executed(
    zoo_pte: ZooPte, host_runner: Path, tmp_path: Path
) -> None:
    """What the compiler leaves for an evaluation is made here by hand; the sound program's outputs stand for the
    quantised module's."""
    images, labels = (array[:60] for array in digits())
    program = zoo_pte("digits_cnn").pte
    spool = filesystem.make_directory(tmp_path / "spool")
    for name, array in (
        ("input0", images[:, None]),
        ("float0", float_outputs("digits_cnn", images[:, None], tmp_path)[0]),
        ("quantised0", executed(program, tmp_path, input0=images[:, None])["output0"]),
        ("label0", labels[:, None]),
    ):
        np.save(spool / f"{name}.npy", array)
    (tmp_path / "damaged.pte").write_bytes(damaged(program))
    sound, bad = (
        figures(measure(facts(len(images)), spool, path, host_runner))
        for path in (program, tmp_path / "damaged.pte")
    )
    assert sound["quantised executed sqnr_db"] == np.inf
    assert bad["quantised executed sqnr_db"] < 20
    assert bad["float executed sqnr_db"] < sound["float executed sqnr_db"] - 10
    for name in ("float quantised sqnr_db", "float quantised top1", "labels quantised top1"):
        assert bad[name] == sound[name]


def test_int8_inputs_and_several_outputs(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(TWO_INPUTS.replace("self.conv(x)", "self.conv(x).amax((2, 3))"))
    generator = np.random.default_rng(1)
    x, y = (generator.uniform(-1, 1, (40, 3, 4, 4)).astype(np.float32) for _ in range(2))
    difference = x - 2 * y  # the second output, computed here
    wanted = {"output0": np.zeros((40, 4), np.float32), "output1": difference}
    np.savez(tmp_path / "data.npz", input0=x, input1=y, **wanted)
    np.savez(tmp_path / "calibration.npz", input0=x, input1=y)
    outcome, record = compiled(
        tmp_path / "out",
        tmp_path / "net.py",
        *("--io", "int8", "--calibration", tmp_path / "calibration.npz", "--evaluate", tmp_path / "data.npz"),
        *("--min-sqnr", "expected-executed=20"),
    )
    # Nothing is near the zeros that are expected of the first output: each output has a verdict of its own.
    assert outcome.code == 7
    assert "expected → executed, output 0: minus infinity" in outcome.err
    assert "output 1" not in outcome.err.partition("error:")[2]
    assert "40 of the 40 evaluation samples are calibration samples too" in outcome.err
    assert pair(record, "expected", "float", 1)["max_abs_error"] < 1e-6
    quantised = record["accuracy"]["outputs"][1]["quantisation"]
    low, high = difference.min(), difference.max()
    assert quantised["scale"] == pytest.approx((high - low) / 255, rel=0.05)
    assert pair(record, "float", "executed", 1)["max_abs_error"] < 4 * quantised["scale"]
    reasons = {row["path"]: row["reason"] for row in record["unavailable"]}
    number = record["accuracy"]["pairs"].index(pair(record, "float", "executed", 1))
    assert "class scores" in reasons[f"/accuracy/pairs/{number}/top1"]


@pytest.mark.filterwarnings("ignore")  # torch and ExecuTorch, imported in this process, give many
def test_a_program_that_came_quantised_has_no_float_model(host_runner: Path, tmp_path: Path) -> None:
    import torch

    from ethosu_sdk.compile import lowering, quantizing, worker

    target = parse_target("ethos-u55-128")
    inputs = (torch.linspace(-1, 1, 12).view(1, 3, 2, 2),)
    program = torch.export.export(torch.nn.Conv2d(3, 4, 1).eval(), inputs)
    prepared = quantizing.prepare_module(program, lowering.compile_spec(target), "int8")
    prepared(*inputs)
    torch.export.save(
        torch.export.export(quantizing.convert_module(prepared), inputs), tmp_path / "quantised.pt2"
    )
    np.savez(tmp_path / "data.npz", input0=np.linspace(-1, 1, 60, dtype=np.float32).reshape(5, 3, 2, 2))
    folders = [filesystem.make_directory(tmp_path / name) for name in ("out", "spool")]
    evaluation = EvaluationRequest(tmp_path / "data.npz", folders[1])
    request = CompileRequest(str(tmp_path / "quantised.pt2"), target, folders[0], evaluation=evaluation)
    output = worker.run_stages(request, lambda stage: None)
    found = output.evaluation
    assert found is not None
    assert compile_facts.from_json(EvaluationFacts, json.loads(compile_facts.to_json(found))) == found
    assert "came quantised" in found.missing["float"]
    assert found.calibration_overlap is None
    rows = measure(found, folders[1], output.pte, host_runner)
    assert [row.pair for row in rows] == [("quantised", "executed")]
    assert figures(rows)["quantised executed sqnr_db"] > 30


def test_a_sample_with_a_nan_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    values = np.ones((3, 4, 10), np.float32)
    values[2, 1, 7] = np.nan
    np.savez(tmp_path / "data.npz", input0=values)
    outcome = sdk(
        "compile", "zoo:softmax", "-o", tmp_path / "out", "--evaluate", tmp_path / "data.npz", cwd=tmp_path
    )
    assert outcome.code == 3
    assert "'input0' has a NaN or infinite value in sample 2" in outcome.err
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {"compile.log", ".lock"}
