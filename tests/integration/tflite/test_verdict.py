"""The verdict on a `.tflite`: the program has the bits of an interpreter of others, and a planted fault is found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import child_process, compile_command
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest, sample_array
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.pipeline import StageClock
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.compile.tflite import stages
from ethosu_sdk.records import validation
from tests.records import read
from tests.tflite_files import Model
from tests.tflite_networks import Network

OPTIONS = CompileOptions(target="ethos-u55-128")


def network() -> Model:
    """Two dense layers wide enough that LiteRT's rounding shows, and a convolution."""
    net = Network(seed=20)
    x = net.conv(net.input("image", 1, 8, 8, 4), 16, (3, 3), stride=2)
    net.output(net.dense(net.dense(net.reshape(x, 1, 256), 512, "RELU"), 256), "scores")
    return net.model()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return network().write(tmp_path_factory.mktemp("model") / "net.tflite")


def judged(model: Path, folder: Path, compiler: child_process.Compiler) -> dict[str, Any]:
    """The record of a compilation whose program `compiler` makes."""
    try:
        compile_command.compile_model(str(model), OPTIONS, folder, Reporter(), compiler=compiler)
    except VerdictError:
        assert read(folder / "net.compile.json")["status"] == "fail"
    record = read(folder / "net.compile.json")
    assert validation.record_problems(record) == []
    return record


def test_an_interpreter_with_other_rounding_is_named(model: Path, tmp_path: Path) -> None:
    check = judged(model, tmp_path / "out", child_process.compile_model)["check"]
    assert check["status"] == "pass"
    rows = {
        row["interpreter"].split()[0] + ("*" if "rounding" in row else ""): row for row in check["readings"]
    }
    assert set(rows) == {"tflite-micro", "LiteRT", "LiteRT*"}
    assert rows["LiteRT*"]["equal"] == rows["LiteRT*"]["elements"] == 3 * 256
    assert 0 < rows["LiteRT"]["elements"] - rows["LiteRT"]["equal"] < 100
    assert rows["LiteRT"]["largest"] <= 2
    assert rows["tflite-micro"].get("equal", 3 * 256) == 3 * 256  # not installed on arm64


def test_a_sum_is_the_real_one(tmp_path: Path) -> None:
    model = Model()
    x = model.input("x", (1, 8, 9, 16), "int8", 0.05, -7)
    y = model.tensor((1, 1, 9, 16), "int8", 0.11, 9)
    model.output(model.operator("SUM", [x, model.constant(np.array([1], np.int32))], y, keep_dims=True))
    check = judged(model.write(tmp_path / "net.tflite"), tmp_path / "out", child_process.compile_model)[
        "check"
    ]
    assert check["status"] == "pass"
    last = check["readings"][-1]
    assert last["rounding"].endswith(f"real values are rounded in {y.name}")
    assert last["equal"] == last["elements"]


@pytest.mark.parametrize("is_refused", [True, False])
def test_what_vela_compiles_wrongly_is_no_program(
    is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vela 5.1.0 gives the first layer an IFM of 2 x 2 and an OFM of 1 x 4 elements: the other layer, which has its
    output as weights, changes the one and not the other. Without the refusal, the comparison finds it."""
    net = Network(seed=10)
    rows, weights = net.input("rows", 4, 8), net.dense(net.input("keys", 4, 8), 8)
    net.output(net.add("FULLY_CONNECTED", [rows, weights], (4, 4), fused_activation_function="NONE"), "y")
    path = net.model().write(tmp_path / "net.tflite")
    if is_refused:
        with pytest.raises(InputError, match=r"operator 1 .* weights that operator 0 .* computes"):
            compile_command.compile_model(str(path), OPTIONS, tmp_path / "out", Reporter())
        return

    def compiler(request: CompileRequest, progress: child_process.Progress | None = None) -> CompileOutput:
        return stages.run_stages(request, parse_model_spec(request.model), StageClock(lambda stage: None))

    monkeypatch.setattr(stages, "_refuse_computed_weights", lambda model: None)
    check = judged(path, tmp_path / "out", compiler)["check"]
    assert check["status"] == "fail"
    assert all(row["equal"] == row["elements"] // 2 for row in check["readings"] if "equal" in row)


def test_a_changed_weight_fails(model: Path, tmp_path: Path) -> None:
    changed = network()
    weights = changed.tensors[changed.operators[-1].inputs[1]].buffer
    content = bytearray(changed.buffers[weights])
    content[5] ^= 0x40
    changed.buffers[weights] = bytes(content)
    other = changed.write(tmp_path / "net.tflite")

    def compiler(request: CompileRequest, progress: child_process.Progress | None = None) -> CompileOutput:
        output = child_process.compile_model(request, progress)
        again = replace(request, model=str(other), out_dir=tmp_path / "other", check_folder=None)
        output.pte.write_bytes(child_process.compile_model(again, progress).pte.read_bytes())
        return output

    check = judged(model, tmp_path / "out", compiler)["check"]
    assert check["status"] == "fail"
    assert all(row["equal"] < row["elements"] for row in check["readings"] if "equal" in row)


def test_one_wrong_element_of_one_step_fails(model: Path, tmp_path: Path) -> None:
    def compiler(request: CompileRequest, progress: child_process.Progress | None = None) -> CompileOutput:
        output = child_process.compile_model(request, progress)
        assert output.check is not None
        assert request.check_folder is not None
        for number, row in enumerate(output.check.readings):
            path = request.check_folder / sample_array(f"reading{number}_", 2, 0)
            if not row.reason:
                array = np.load(path)
                array.flat[17] += 1 if array.flat[17] < 127 else -1
                np.save(path, array)
        return output

    check = judged(model, tmp_path / "out", compiler)["check"]
    assert check["status"] == "fail"
    best = max((row for row in check["readings"] if "equal" in row), key=lambda row: row["equal"])
    assert (best["elements"] - best["equal"], best["largest"]) == (1, 1.0)
    assert check["outputs"][0]["detail"].endswith("(sample 2)")
