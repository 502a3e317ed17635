"""Programs that were quantised before they came: the example of docs/qat.md through the command line, and what other
quantisers and trainings leave behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.aot import CompileRequest, pipeline
from ethosu_sdk.errors import InputError
from ethosu_sdk.targets import parse_target
from tests.conftest import ExpectedOutputs
from tests.integration.cli import sdk

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "qat_digits.py"
U55 = parse_target("ethos-u55-128")


def executed(folder: Path, name: str) -> dict[str, float]:
    """Top-1 of each stage of a saved program on the held-back images, from a fresh process."""
    outcome = sdk(
        "compile", f"{name}.pt2", "--evaluate", "held_back.npz", "-o", name, cwd=folder, timeout_s=900
    )
    assert outcome.code == 0, outcome.err
    record = json.loads((folder / name / f"{name}.compile.json").read_text())
    assert record["prequantized"]
    assert all(row["boundary"] for row in record["cpu_operators"])
    assert [row["dtype"] for row in record["inputs"]] == ["float32"]
    pairs = [row for row in record["accuracy"]["pairs"] if row["reference"] == "labels"]
    return {row["candidate"]: row["top1"]["share"] for row in pairs}


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed = dict(
        line.split() for line in done.stdout.splitlines() if line.startswith(("float", "ptq", "qat"))
    )
    ptq, qat = (executed(tmp_path, f"digits_{name}") for name in ("ptq", "qat"))
    assert qat["executed"] >= ptq["executed"]
    assert qat["executed"] == pytest.approx(float(printed["qat"]), abs=0.01)
    assert ptq["executed"] == pytest.approx(float(printed["ptq"]), abs=0.01)


def net() -> tuple[Any, tuple[Any, ...]]:
    import torch

    torch.manual_seed(1)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 1), torch.nn.ReLU6()
    )
    return layers.eval(), (torch.randn(1, 3, 4, 4),)


def test_a_program_of_xnnpacks_quantiser_runs_on_the_npu(
    tmp_path: Path, expected_outputs: ExpectedOutputs
) -> None:
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    module, inputs = net()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    program = torch.export.export(convert_pt2e(prepared), inputs)
    torch.export.save(program, tmp_path / "net.pt2")
    output = pipeline.run(CompileRequest(str(tmp_path / "net.pt2"), U55, tmp_path), lambda stage: None)
    assert all(row.boundary for row in output.cpu_operators)
    with np.load(output.io) as arrays:
        given, wanted = arrays["input0"], arrays["output0"]
    (result,) = expected_outputs(output, [given])
    steps = np.abs(result - wanted) / np.diff(np.unique(wanted)).min()
    assert steps.max() <= 1.001
    assert np.unique(result).size > 5


def test_an_operator_in_training_mode_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.nn.functional.dropout(x + 1, 0.3)\n"
        "example_inputs = (torch.ones(1, 3),)\n"
    )
    with pytest.raises(InputError, match=r"training mode: aten::dropout at net\.py:4") as caught:
        pipeline.run(CompileRequest(str(tmp_path / "net.py"), U55, tmp_path), lambda stage: None)
    assert "self.training" in caught.value.hint


def test_a_model_that_is_prepared_but_not_converted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "from torchao.quantization.pt2e import FakeQuantize\n"
        "model = torch.nn.Sequential(torch.nn.Linear(3, 2), FakeQuantize())\n"
        "example_inputs = (torch.ones(1, 3),)\n"
    )
    with pytest.raises(InputError, match="'1' is a FakeQuantize") as caught:
        pipeline.run(CompileRequest(str(tmp_path / "net.py"), U55, tmp_path), lambda stage: None)
    assert "convert_pt2e" in caught.value.hint
