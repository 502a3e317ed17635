"""What `compile` does to weights and biases for the accuracy of int8.

The compiler runs in this process, so that torch is imported once.
"""

from pathlib import Path

import pytest

from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

U55 = Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")
FILE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential({layers}).eval()
wide = torch.ones(16)
wide[3] = 1000.0
with torch.no_grad():
    for name, parameter in model[0].named_parameters():
        parameter *= wide.view(-1, *[1] * (parameter.dim() - 1))
    model[2].weight *= 1 / wide.view({axis})
samples = torch.randn(65, {shape})
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
# One channel is a thousand times as wide as the others, and its weights behind are as much smaller.
DEPTHWISE = FILE.format(
    layers="nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=16), nn.ReLU(), nn.Conv2d(16, 8, 1)",
    axis="-1, 1, 1, 1",
    shape="1, 3, 8, 8",
)
LINEAR = FILE.format(
    layers="nn.Linear(32, 16), nn.LeakyReLU(), nn.Linear(16, 8)", axis="1, -1", shape="1, 32"
)
# What is cut off at 6 in every channel allows no factor, and there is no bias to correct.
BOUNDED = FILE.format(
    layers="nn.Linear(32, 16, bias=False), nn.ReLU6(), nn.Linear(16, 8, bias=False)",
    axis="1, -1",
    shape="1, 32",
)


def compiled(folder: Path, model: str, *, as_written: bool = False) -> CompileOutput:
    """The compilation of a model; its graphs are compared with the float model, or this fails."""
    place = folder / f"as-written-{as_written}"
    check = place / "check"
    check.mkdir(parents=True)
    file = folder / "net.py"
    file.write_text(model)
    options = ProgramOptions(as_written=as_written)
    request = CompileRequest(str(file), U55, place, options=options, check_folder=check)
    return worker.run_stages(request, lambda stage: None)


def decibels(output: CompileOutput) -> float:
    """The ratio of the quantised model to the float one; the example is not among the calibration samples."""
    assert output.chain is not None
    (row,) = next(link.outputs or () for link in output.chain.links if link.link == "quantised")
    assert row.sqnr_db is not None
    return row.sqnr_db


@pytest.mark.parametrize("model", [DEPTHWISE, LINEAR], ids=["depthwise", "linear"])
def test_a_wide_channel_leaves_the_others_their_steps(model: str, tmp_path: Path) -> None:
    plain = compiled(tmp_path, model, as_written=True)
    refined = compiled(tmp_path, model)
    assert plain.refinements == ()
    assert refined.refinements[0].name == "equalised channels"
    assert refined.refinements[0].layers == 1
    assert decibels(plain) < 15.0
    assert decibels(refined) > decibels(plain) + 20.0


def test_where_nothing_is_to_be_gained_the_program_stays(tmp_path: Path) -> None:
    plain, refined = (compiled(tmp_path, BOUNDED, as_written=choice) for choice in (True, False))
    assert refined.refinements == ()
    assert refined.pte.read_bytes() == plain.pte.read_bytes()
