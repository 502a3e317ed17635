"""A mask costs attention no more than 3 dB, whatever hides the scores: against the same network without a mask, each
quantised and compared with its own float model.

The compiler runs in this process, so that torch is imported once.
"""

import functools
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.rewrite import attention_masks
from tests.integration.cli import sdk_ok

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

U55 = Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")
U85 = Target("ethos-u85", 256, "Ethos_U85_SYS_DRAM_Mid", "Sram_Only")
MOST_LOST_DB = 3.0

FILE = """
import math, torch
from torch import nn
T, W, H = 8, 16, 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(W, W) for _ in range(3))
        keep = torch.tril(torch.ones(T, T, dtype=torch.bool)).view(1, 1, T, T)
        self.register_buffer("keep", keep)
        self.register_buffer("m", torch.zeros(1, 1, T, T).masked_fill(~keep, {value}))

    def forward(self, x, m):
        q, k, v = (f(x).view(1, T, H, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        s = q @ k.transpose(2, 3) / math.sqrt(W // H)
        y = {attention}
        return y.transpose(1, 2).reshape(1, T, W) + 0 * m.sum()

torch.manual_seed(0)
model = Net().eval()
for f in (model.q, model.k):
    f.weight.data.mul_(4)
samples = [(torch.randn(1, T, W), {m}) for n in range(8)]
example_inputs = samples[0]
calibration = samples
"""
SUM = "torch.softmax({}, -1) @ v"
BUILT_IN = "nn.functional.scaled_dot_product_attention(q, k, v, {})"
PADDING = "torch.zeros(1, 1, 1, T).masked_fill(torch.arange(T) >= T - n % 4, {})"
# What the attention is, the value of the buffer m, and the input m.
MASKS = {
    "-1e4": (SUM.format("s + self.m"), "-1e4"),
    "-1e9": (SUM.format("s + self.m"), "-1e9"),
    "-inf": (SUM.format("s + self.m"), "-math.inf"),
    "bool": (SUM.format("s.masked_fill(~self.keep, -math.inf)"),),
    "causal": (BUILT_IN.format("is_causal=True"),),
    "built-in bool": (BUILT_IN.format("attn_mask=self.keep"),),
    "input": (SUM.format("s + m"), "0", PADDING.format("-1e4")),
    "large input": (SUM.format("s + m"), "0", PADDING.format("-1e9")),
    "bool input": (
        SUM.format("torch.where(m, s, -1e9)"),
        "0",
        "torch.arange(T).view(1, 1, 1, T) < T - n % 4",
    ),
}


def compiled(
    folder: Path, attention: str, value: str = "0", m: str = "torch.zeros(1)", **how: object
) -> CompileOutput:
    """The compilation of an attention; the graph is compared with the float model, or this fails."""
    file = folder / "net.py"
    file.write_text(FILE.format(attention=attention, value=value, m=m))
    (folder / "check").mkdir(exist_ok=True)
    target = how.get("target", U55)
    assert isinstance(target, Target)
    return worker.run_stages(
        CompileRequest(str(file), target, folder, check_folder=folder / "check"), lambda stage: None
    )


def decibels(output: CompileOutput) -> float:
    """The ratio of the quantised model to the float one."""
    assert output.chain is not None
    link = next(row for row in output.chain.links if row.link == "quantised")
    return min(row.sqnr_db for row in link.outputs if row.sqnr_db is not None)


@pytest.fixture(scope="module")
def unmasked(tmp_path_factory: pytest.TempPathFactory) -> float:
    return decibels(compiled(tmp_path_factory.mktemp("unmasked"), SUM.format("s")))


_FEW = {"-1e9", "bool", "causal", "input"}  # the others are thorough


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in _FEW else [pytest.mark.thorough]) for name in MASKS],
)
def test_a_mask_costs_at_most_three_decibels(name: str, unmasked: float, tmp_path: Path) -> None:
    assert decibels(compiled(tmp_path, *MASKS[name])) > unmasked - MOST_LOST_DB


def test_on_ethos_u85_too(unmasked: float, tmp_path: Path) -> None:
    assert decibels(compiled(tmp_path, *MASKS["bool"], target=U85)) > unmasked - MOST_LOST_DB


@pytest.mark.parametrize("name", ["-1e4", pytest.param("bool input", marks=pytest.mark.thorough)])
def test_where_it_is_left_a_mask_costs_more(
    name: str, unmasked: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_masks, "place_masks", lambda program, samples: program)
    assert decibels(compiled(tmp_path, *MASKS[name])) < unmasked - 10.0


def test_rows_without_a_value_and_small_offsets_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is masked throughout has the softmax of its scores in float; an offset of -8 is no mask."""
    seen: list[int] = []
    original = attention_masks.place_masks

    @functools.wraps(original)
    def counted(program: object, samples: object) -> object:
        placed = original(program, samples)  # type: ignore[arg-type]
        seen.append(sum("softmax" in str(node.target) for node in placed.graph.nodes))
        return placed

    monkeypatch.setattr(attention_masks, "place_masks", counted)
    rows = "s.masked_fill((torch.arange(T) < 2).view(1, 1, T, 1), -1e4)"
    compiled(tmp_path, SUM.format(rows))
    compiled(tmp_path, SUM.format("s + self.m"), "-8.0")
    assert seen == [1, 1]


RUN_TIME = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, m):
        return torch.softmax(x @ x.transpose(-1, -2) + (1.0 - m) * -10000.0, -1) @ x

torch.manual_seed(0)
model = Net().eval()
example_inputs = (torch.randn(1, 4, 8), torch.tensor([[[1.0, 1.0, 1.0, 0.0]]]))
"""


def test_a_mask_that_hides_everything_at_run_time_gives_the_models_output(tmp_path: Path) -> None:
    """No sample of the calibration has such a mask: every quantised range must hold for it all the same."""
    import torch

    (tmp_path / "net.py").write_text(RUN_TIME)
    sdk_ok("compile", "net.py", "--target", "ethos-u85-256", "-o", "out", cwd=tmp_path)
    (x,) = (npz.read_npz(tmp_path / "out" / "net.io.npz")["input0"],)
    npz.write_npz(tmp_path / "in.npz", {"input0": x, "input1": np.zeros((1, 1, 4), np.float32)})
    run = ("run", "out/net.pte", "--simulator", "host", "--inputs", "in.npz", "-o", "run")
    sdk_ok(*run, cwd=tmp_path)
    row = torch.from_numpy(x)
    wanted = (torch.softmax(row @ row.transpose(-1, -2), -1) @ row).numpy()
    error = npz.read_npz(tmp_path / "run" / "outputs.npz")["output0"] - wanted
    assert (
        10 * np.log10((wanted**2).sum() / (error**2).sum()) > 18
    )  # 21.2 dB; 0.03 dB without rows of their own
