"""The time of an inference on a board, against what others measured on it.

Alif Ensemble E8, Cortex-M55 and Ethos-U55-256 at 400 MHz, torchvision's MobileNetV2 at 224x224: a method's execution
takes about 19 ms (pytorch/executorch, docs/source/zephyr_alif_tutorial.md), of which quantize_per_tensor has
1,365,831 cycles (the same network in Arm's learning path, CMSIS-NN with Helium).
"""

import json
from pathlib import Path

import pytest

from ethosu_sdk import schema
from tests.integration.cli import sdk

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]

CPU_HZ = 400e6
METHOD_S = 19e-3
QUANTIZE_S = 1_365_831 / CPU_HZ


def test_mobilenet_v2_on_an_alif_board(tmp_path: Path) -> None:
    outcome = sdk("run", "zoo:mobilenet_v2", "--system", "alif-e8-hp", "-o", "out", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert schema.problems(run) == []
    time = run["time"]
    assert time["place"] == "alif-e8-hp"
    assert time["sums"]["npu_s"] == pytest.approx(METHOD_S - QUANTIZE_S, rel=0.15)
    (quantize,) = (
        part for part in time["parts"] if part.get("name", "").endswith("::quantize_per_tensor.out")
    )
    assert quantize["duration_s"] == pytest.approx(QUANTIZE_S, rel=0.20)  # the bound of the CPU's band
    assert time["total"]["duration_s"] == pytest.approx(METHOD_S, rel=0.20)
