"""Programs that were quantised before they came: the example of docs/guide/qat.md through the command line, and what
other quantisers and trainings leave behind."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from tests import warm
from tests.conftest import ExpectedOutputs
from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.places import ROOT
from tests.records import printed, read

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

SCRIPT = ROOT / "docs" / "guide" / "examples" / "qat_digits.py"
U55 = parse_target("ethos-u55-128")


def executed(folder: Path, name: str) -> dict[str, float]:
    """Top-1 of each stage of a saved program on the held-back images, from a fresh process."""
    sdk_ok("compile", f"{name}.pt2", "--evaluate", "held_back.npz", "-o", name, cwd=folder, timeout_s=900)
    record = read(folder / name / f"{name}.compile.json")
    assert record["prequantized"]
    assert all(row["boundary"] for row in record["cpu_operators"])
    assert [row["dtype"] for row in record["inputs"]] == ["float32"]
    pairs = [row for row in record["accuracy"]["pairs"] if row["reference"] == "labels"]
    return {row["candidate"]: row["top1"]["share"] for row in pairs}


@pytest.mark.thorough
def test_the_example_of_the_docs(tmp_path: Path) -> None:
    done = warm.python(SCRIPT, tmp_path, timeout_s=900)
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
    output = worker.run_stages(CompileRequest(str(tmp_path / "net.pt2"), U55, tmp_path), lambda stage: None)
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
    with pytest.raises(
        InputError, match=r"training mode: aten::dropout at net\.py, line 4, in Net\.forward"
    ) as caught:
        worker.run_stages(CompileRequest(str(tmp_path / "net.py"), U55, tmp_path), lambda stage: None)
    assert "self.training" in caught.value.hint


def test_a_model_that_is_prepared_but_not_converted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "from torchao.quantization.pt2e import FakeQuantize\n"
        "model = torch.nn.Sequential(torch.nn.Linear(3, 2), FakeQuantize())\n"
        "example_inputs = (torch.ones(1, 3),)\n"
    )
    with pytest.raises(InputError, match="'1' is a FakeQuantize") as caught:
        worker.run_stages(CompileRequest(str(tmp_path / "net.py"), U55, tmp_path), lambda stage: None)
    assert "convert_pt2e" in caught.value.hint


# Made with no quantiser at all: a permutation between other scales, which carries the mark that sends it to the NPU.
CONVERTED = """
import torch
from ethosu_sdk.compile.rewrite import prequantized
import torchao.quantization.pt2e.quantize_pt2e  # the operators
{fault}

OPERATORS = torch.ops.quantized_decomposed

def through(x, scale):
    limits = (0, -128, 127, torch.int8)
    x = OPERATORS.quantize_per_tensor(x, scale, *limits)
    return OPERATORS.dequantize_per_tensor(x, scale, *limits)

class Net(torch.nn.Module):
    def forward(self, x):
        x = through(x, 0.03)
        x = through(x + x, 0.05)
        return through(x.permute(0, 2, 3, 1), 0.1)

example_inputs = (torch.linspace(-3, 3, 96).view(1, 2, 6, 8),)
model = torch.export.export(Net(), example_inputs).module(check_guards=False)
"""
WITHOUT_THE_STEP = "prequantized._differs = lambda node: False"


def converted(folder: Path, fault: str) -> tuple[Outcome, dict[str, Any]]:
    (folder / "net.py").write_text(CONVERTED.format(fault=fault))
    outcome = sdk("compile", "net.py", "-o", "out", "--json", cwd=folder, timeout_s=900)
    return outcome, json.loads(outcome.out)


def test_a_file_whose_model_is_a_converted_graph(tmp_path: Path) -> None:
    outcome, record = converted(tmp_path, "")
    assert outcome.code == 0, outcome.err
    assert record["prequantized"]
    assert "quantize_per" not in record["options"]
    assert "aten::permute_copy.out" in {row["name"] for row in record["cpu_operators"]}


def test_without_the_step_that_looks_at_scales_the_check_fails(tmp_path: Path) -> None:
    outcome, record = converted(tmp_path, WITHOUT_THE_STEP)
    assert outcome.code == 7, outcome.err
    assert record["check"]["status"] == "fail"


def saved(folder: Path, keywords: dict[str, Any] | None = None) -> Path:
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, bias: float | torch.Tensor = 0.5) -> torch.Tensor:
            return torch.relu(x) + bias

    path = folder / "net.pt2"
    torch.export.save(torch.export.export(Net(), (torch.ones(1, 3),), keywords), path)
    return path


def altered(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """A copy of a saved program, with the content of each of its members changed."""
    other = path.with_stem("other")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            target.writestr(name, change(name, source.read(name)))
    return other


def test_keyword_inputs_are_refused(tmp_path: Path) -> None:
    import torch

    path = saved(tmp_path, {"bias": torch.ones(1, 3)})
    with pytest.raises(InputError, match="takes keyword inputs") as caught:
        worker.run_stages(CompileRequest(str(path), U55, tmp_path), lambda stage: None)
    assert "positional" in caught.value.hint


def test_a_program_of_another_torch_is_called_that(tmp_path: Path) -> None:
    def of_the_future(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        program = json.loads(data)
        program["torch_version"], program["schema_version"]["major"] = "2.99.1+cu1", 99
        return json.dumps(program).encode()

    other = altered(saved(tmp_path), of_the_future)
    with pytest.raises(
        InputError, match=r"was saved by torch 2\.99\.1, but the installed torch 2\.\d+\.\d+ cannot load it"
    ) as caught:
        worker.run_stages(CompileRequest(str(other), U55, tmp_path), lambda stage: None)
    assert "export and save" in caught.value.hint


def test_an_operator_that_is_not_there_is_not_called_a_wrong_file(tmp_path: Path) -> None:
    def misspelt(_name: str, data: bytes) -> bytes:
        return data.replace(b"torch.ops.aten.relu", b"torch.ops.aten.my_relu")

    other = altered(saved(tmp_path), misspelt)
    with pytest.raises(InputError, match=r"torch 2\.\d+\.\d+ cannot load the program") as caught:
        worker.run_stages(CompileRequest(str(other), U55, tmp_path), lambda stage: None)
    assert "FILE.py" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "named"),
    [({"quantize_per": "tensor"}, "--quantize-per"), ({"calibration": (Path("x.npz"),)}, "--calibration")],
)
def test_options_that_quantise_are_refused(options: dict[str, Any], named: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(CONVERTED.format(fault=""))
    with pytest.raises(UsageError, match=f"quantised already: {named} would have no effect"):
        worker.run_stages(
            CompileRequest(str(tmp_path / "net.py"), U55, tmp_path, options=ProgramOptions(**options)),
            lambda stage: None,
        )


INSTANCE = """
import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1))
example_inputs = (torch.randn(1, 3, 6, 6),)
calibration = [torch.randn(1, 3, 6, 6) for _ in range(4)]
quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
"""


def test_a_quantiser_that_is_complete_reaches_the_npu_and_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(INSTANCE)
    record = printed(sdk("compile", "net.py", "-o", "out", "--json", cwd=tmp_path, timeout_s=900))
    assert record["options"]["quantizer"] == "instance of the model file"
    assert not {"quantize", "quantize_per"} & set(record["options"])
    assert len(record["delegates"]) == 1
    assert all(row["boundary"] for row in record["cpu_operators"])
