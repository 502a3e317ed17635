"""`compare --vela` goes on when the installed Vela fails in the compilation that it begins with."""

from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.integration.compare.conftest import BROKEN, OWN, SLOWER
from tests.integration.compare.runs import compare

pytestmark = [pytest.mark.torch]

MODEL = """
import contextlib
import torch
from ethosu_sdk.compile import lowering
from executorch.backends.arm import arm_vela

{fault}
torch.manual_seed(0)
convolutions = [torch.nn.Conv2d(3, 4, 3, padding=1) for _ in range(2)]

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.raw, self.plain = convolutions

    def forward(self, x):
        return torch.cat([self.raw(x), torch.relu(self.plain(x))], 1)

model = Net().eval()
example_inputs = (torch.randn(1, 3, 8, 8),)
calibration = [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
"""
REFUSES = """
def refuse(words):
    raise SystemExit("Error: not today")
arm_vela.vela.main = refuse
"""
# The ReLU is lost (compile/rewrite): the check of the compilation fails.
COMPUTES_OTHERWISE = "lowering.rewrites_installed = contextlib.nullcontext"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (REFUSES, f"with Vela {OWN}: Vela refused: SystemExit: Error: not today"),
        (COMPUTES_OTHERWISE, f"with Vela {OWN}: the program's outputs differ from those of the model"),
    ],
)
def test_the_others_are_compared(fault: str, said: str, versions: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.format(fault=fault))
    found = compare("--vela", f"{SLOWER},{OWN},{BROKEN}", "net.py", cwd=tmp_path)
    assert found.done.code == 7, found.done.err
    assert f"warning: {said}" in found.done.err
    names = [f"vela-{version}" for version in (SLOWER, OWN)]
    assert [row["name"] for row in found.record["subjects"]] == names
    (comparison,) = found.record["comparisons"]
    figures = {row["name"]: row["status"] for row in comparison["metrics"]}
    assert "model.bytes" in figures
    assert "outputs.0" not in figures
    (failed,) = found.record["failed"]
    assert failed["name"] == f"vela-{BROKEN}"
    assert "this network is too good for me" in failed["reason"]
    assert sdk("validate", "out", cwd=tmp_path).code == 0


def test_a_fault_of_the_model_is_not_velas(versions: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODEL.format(fault="").replace("range(2)", "range(1)"))
    done = sdk("compare", "--vela", f"{OWN},{SLOWER}", "net.py", cwd=tmp_path)
    assert done.code == 3, done.err
    assert "with Vela" not in done.err
    assert not (tmp_path / "build" / "compare").exists()
