"""Ranges of quantised values: small ones keep their precision, with int16 more of it than with int8; nothing is cut
off by a fixed range; biases fit. The reference is float PyTorch, the programs are executed on the host simulator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import cache, npz
from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import quantizing, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

CONVOLUTIONS = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 8, 9, bias=False), nn.ReLU(), nn.Conv1d(8, 4, 5, bias=False))
samples = [torch.randn(1, 1, 64) * {amplitude} for _ in range(32)]
example_inputs, calibration = (samples[0],), [(sample,) for sample in samples]
"""
# A network of which one channel is all but dead: its bias is millions of times what its weights add.
BIASES = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 8, 9), nn.ReLU(), nn.Conv1d(8, 4, 5))
with torch.no_grad():
    model[0].weight[3] *= 1e-6
    model[0].bias[3] = 2.5
samples = [torch.randn(1, 1, 64) * 1e-5 for _ in range(32)]
example_inputs, calibration = (samples[0],), [(sample,) for sample in samples]
"""
UNBATCHED = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.ConvTranspose2d(4, 4, 2, 2), nn.AdaptiveAvgPool2d(3),
    nn.Flatten(1), nn.Conv1d(4, 4, 3), nn.Flatten(0), nn.Linear(28, 5),
)
samples = [torch.randn(3, 8, 8) for _ in range(16)]
example_inputs, calibration = (samples[0],), [(sample,) for sample in samples]
"""
WARPED = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.grid, self.last = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 2, 1), nn.Conv2d(3, 3, 1)
    def forward(self, x):
        grid = (2 * self.grid(x)).permute(0, 2, 3, 1)
        return self.last(nn.functional.grid_sample(8 * self.image(x), grid, align_corners=False))
model = Net()
samples = [torch.nn.functional.avg_pool2d(torch.randn(1, 3, 16, 16), 5, 1, 2) * 5 for _ in range(16)]
example_inputs, calibration = (samples[0],), [(sample,) for sample in samples]
"""


def sqnr_db(source: str, target: str, quantize: str, folder: Path) -> float:
    """Of the executed program against float PyTorch, over several samples."""
    import torch

    folder.mkdir()
    (folder / "net.py").write_text(source)
    options = ProgramOptions(quantize=quantize)
    output = worker.run_stages(
        CompileRequest(str(folder / "net.py"), parse_target(target), folder, options=options),
        lambda stage: None,
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    runner = host_runtime.build_runner(cache.directory(host_runtime.CACHE_PART))
    noise = signal = 0.0
    with host_runtime.open_pte(runner, output.pte, NpuModel()) as runtime, torch.no_grad():
        for sample in namespace["samples"][:6]:
            want = namespace["model"](sample).numpy().astype(float)
            noise += float(((runtime.run([sample.numpy()])[0] - want) ** 2).sum())
            signal += float((want**2).sum())
    assert npz.read_npz(output.io)["output0"].dtype == np.float32
    return float(10 * np.log10(signal / noise))


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("amplitude", [1, 0.003, 1e-5])
def test_int16_is_better_than_int8_at_every_amplitude(amplitude: float, target: str, tmp_path: Path) -> None:
    source = CONVOLUTIONS.format(amplitude=amplitude)
    int8, int16 = (sqnr_db(source, target, kind, tmp_path / kind) for kind in ("int8", "int16"))
    assert int8 > 35
    assert int16 > 42  # weights have 8 bits in both


@pytest.mark.parametrize(("quantize", "least"), [("int8", 30), ("int16", 38)])
def test_a_bias_of_many_steps_is_not_cut_off(quantize: str, least: float, tmp_path: Path) -> None:
    assert sqnr_db(BIASES, "ethos-u55-128", quantize, tmp_path / quantize) > least


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_layers_without_an_axis_of_batches(target: str, tmp_path: Path) -> None:
    assert sqnr_db(UNBATCHED, target, "int8", tmp_path / target) > 30


def test_what_is_warped_is_not_cut_off(tmp_path: Path) -> None:
    assert sqnr_db(WARPED, "ethos-u55-128", "int8", tmp_path / "warped") > 20


def test_the_range_that_arm_fixes_fails_in_the_third_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executorch.backends.arm import quantizer as arm

    def fixed(quantize: str, *, per_channel: bool, fine: bool = True) -> Any:
        return arm.get_symmetric_quantization_config(is_per_channel=per_channel)

    monkeypatch.setattr(quantizing, "range_configuration", fixed)
    (tmp_path / "net.py").write_text(WARPED)
    (tmp_path / "check").mkdir()
    target = parse_target("ethos-u55-128")
    request = CompileRequest(str(tmp_path / "net.py"), target, tmp_path, check_folder=tmp_path / "check")
    with pytest.raises(VerdictError, match="the quantised model") as failed:
        worker.run_stages(request, lambda stage: None)
    assert "grid_sampler" in failed.value.message


def test_the_operators_that_arm_gives_fixed_ranges_are_known() -> None:
    """Of these, the inputs of `acos`, `asin` and `atanh` lie between -1 and 1 by definition."""
    import torch
    from executorch.backends.arm.quantizer import quantization_annotator

    aten = torch.ops.aten
    functions = {aten.acos.default, aten.asin.default, aten.atanh.default}
    assert set(quantization_annotator._fixed_input_qspec_ops) == functions | {aten.grid_sampler.default}
    assert set(quantization_annotator._fixed_output_qspec_ops) == {aten.grid_sampler.default}
