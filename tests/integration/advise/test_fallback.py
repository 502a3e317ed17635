"""`cortex-m-fallback`: operators in floating point on the CPU, computed on int8 by the Cortex-M backend's."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import KeptFolder
from tests.integration.advise.programs import Advised, advised, compiled, read
from tests.integration.cli import sdk, sdk_ok
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

# Ethos-U55 takes no transposed convolution with strides of 4: as it is written, it stays between two delegates.
STRIDED = """
import torch
from torch import nn

torch.manual_seed(3)
up = nn.ConvTranspose2d(16, 16, 4, stride=4)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), up, nn.Conv2d(16, 8, 1)).eval()
samples = torch.randn(5, 1, 3, 8, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
CONVOLUTION, REPLACEMENT = "aten::convolution.out", "cortex_m::quantized_transpose_conv2d_nhwc.out"


def _calls(folder: Path) -> Counter[str]:
    (path,) = folder.glob("*.compile.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    return Counter({row["name"]: row["calls"] for row in record["cpu_operators"]})


@pytest.fixture(scope="module")
def tried(kept_folder: KeptFolder, qemu_plugin: Path) -> Advised:
    """The network, with its changes of the program tried on QEMU."""

    def make(folder: Path) -> None:
        (folder / "net.py").write_text(STRIDED, encoding="utf-8")
        sdk_ok("compile", "net.py", "--as-written", "-o", "written", "-q", cwd=folder)
        (program,) = (folder / "written").glob("*.pte")
        done = sdk_ok("advise", program, "--try-only", "program", "-o", "out", cwd=folder, timeout_s=600)
        (folder / "shown.txt").write_text(done.out, encoding="utf-8")

    return read(kept_folder("strided", make, own=True) / "out")


@pytest.fixture(scope="module")
def followed(tried: Advised) -> Path:
    """The program that the advice's command line compiles."""
    return compiled(tried.folder.parent, tried.one("cortex-m-fallback")["command"], "followed")


def _figure(trial: dict[str, Any], metric: str) -> tuple[float, float]:
    (row,) = [row for row in trial["figures"] if row["metric"] == metric]
    return row["before"], row["after"]


def test_the_advice_names_the_operator_and_its_cost(tried: Advised) -> None:
    advice = tried.one("cortex-m-fallback")
    assert advice["finding"] == f"{CONVOLUTION} (1 call) would run as {REPLACEMENT} on int8"
    assert advice["command"].endswith("--fallback cortex-m")
    evidence = {row["name"]: row["value"] for row in advice["evidence"]}
    rows = [row for row in tried.profile["operations"] if row["runs_on"] == "CPU"]
    (place,) = [place for place, row in enumerate(rows) if row["name"] == CONVOLUTION]
    cycles = [row["cpu_cycles"]["value"] for row in rows]
    assert evidence["CPU cycles of these calls in floating point"] == cycles[place]
    around = cycles[place - 1] + cycles[place + 1]
    assert evidence["CPU cycles of their conversions"] >= around
    (line,) = [row for row in tried.advice["cpu"] if row["name"] == CONVOLUTION]
    assert f"{REPLACEMENT} on the CPU (--fallback cortex-m)" in line["replacement"]


def test_the_program_with_it_has_the_operator_and_fewer_calls(tried: Advised, followed: Path) -> None:
    after = advised(followed, tried.folder.parent, "followed")
    before_calls, after_calls = _calls(tried.folder.parent / "written"), _calls(followed.parent)
    assert before_calls[CONVOLUTION] == after_calls[REPLACEMENT] == 1
    assert after_calls[CONVOLUTION] == 0
    stated = tried.expected("cortex-m-fallback", "CPU operators")
    layout = after_calls["cortex_m::transpose.out"]
    weights = before_calls["quantized_decomposed::dequantize_per_channel.out"]
    assert stated == (before_calls.total(), after_calls.total() - layout + weights)
    # Negative control: a program that has the option does not get the advice.
    assert after.find("cortex-m-fallback") == []
    assert not any("--fallback" in row.get("replacement", "") for row in after.advice["cpu"])


def test_the_trial_has_its_gain_and_compares_outputs(tried: Advised, followed: Path) -> None:
    """Judged by the cycles that QEMU counted: a program compiled by hand takes as many."""
    trials = {row["name"]: row for row in tried.advice["tried"]["trials"]}
    trial = trials["cortex-m-fallback"]
    assert (trial["state"], trial["outputs"]["state"]) == ("better", "close")
    assert trial["command"] == tried.one("cortex-m-fallback")["command"]
    folder = tried.folder.parent
    run = printed(sdk("run", followed, "--cpu-cycles", "-o", "by-hand", "-q", "--json", cwd=folder))
    before, after = _figure(trial, "total cycles")
    assert after == pytest.approx(run["npu"]["cycles"]["value"] + run["cpu"]["cycles"]["value"], rel=1e-4)
    assert after < before
    assert trial["gain"] == pytest.approx(1 - after / before, abs=1e-6)
    assert "cortex-m-fallback: better" in (folder / "shown.txt").read_text(encoding="utf-8")


def test_a_program_on_the_npu_alone_does_not_get_it(plain: Advised) -> None:
    """Negative control: of this network the CPU has conversions alone."""
    assert plain.find("cortex-m-fallback") == []
    assert {row["rule"]: row["state"] for row in plain.advice["silent"]}["cortex-m-fallback"] == "absent"
