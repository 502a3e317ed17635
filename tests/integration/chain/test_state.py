"""A state in every form that PyTorch runs, all in one program: sixteen steps, against eager PyTorch and the quantised
model; and what loses it is seen, by the compiler and without it."""

import itertools
import math
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import finished_program, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.rewrite import after_lowering
from tests import warm
from tests.integration.cli import sdk, sdk_ok
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.filterwarnings("ignore")]

TABLE = tomllib.loads(Path(__file__).with_name("state_forms.toml").read_text(encoding="utf-8"))
FORMS: list[dict[str, str]] = TABLE["form"]
REFUSED: list[dict[str, str]] = TABLE["refused"]
STEPS = 16
GROUPS = 8  # one program for many forms; a graph of all takes longer than several
SETTINGS = (
    ("int8", "ethos-u55-128"),
    ("int8", "ethos-u85-256"),
    ("int16", "ethos-u85-256"),
    ("int16", "ethos-u55-128"),
)
LEAST = {"int8": 25.0, "int16": 40.0}  # dB, of networks this small with random weights
TARGET = Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")

FILE = """
import torch
from torch import nn
{modules}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 8)
        self.forms = nn.ModuleList([{names}])

    def forward(self, x, position):
        h = self.f(x)
        found = []
        for form in self.forms:
            given = form(x, h, position)
            found += given if isinstance(given, tuple) else [given]
        return tuple(found)

torch.manual_seed(7)
model = Net().eval()
samples = [(torch.rand(1, 8) * 2 - 1, torch.tensor([step % 4])) for step in range(16)]
example_inputs = samples[0]
calibration = samples
"""
MODULE = """
{header}

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, x, h, position):
{forward}
"""
# PyTorch alone, in a process of its own. The second outputs are of a model that forgets what it has seen.
REFERENCE = """
import copy, numpy, net, torch
torch.set_grad_enabled(False)
def run(model, sample):
    return [item.clone().numpy() for item in model(*[item.clone() for item in sample])]
def save(file, rows):
    numpy.savez(file, **{f"output{n}": numpy.stack(column) for n, column in enumerate(zip(*rows))})
save("forgetful.npz", [run(copy.deepcopy(net.model), sample) for sample in net.samples])
save("want.npz", [run(net.model, sample) for sample in net.samples])
numpy.savez("in.npz", **{f"input{n}": numpy.stack([x.numpy() for x in xs]) for n, xs in enumerate(zip(*net.samples))})
"""


def module(form: Mapping[str, str]) -> str:
    """The class of a form; a class in its header has the form's name too, so that no two are called the same."""
    texts = {name: form.get(name, "").replace("Part", f"Part_{form['name']}") for name in ("header", "init")}
    lines = {"init": texts["init"] or "pass", "forward": form["forward"]}
    indented = {name: textwrap.indent(text.strip("\n"), " " * 8) for name, text in lines.items()}
    return MODULE.format(name=f"Form_{form['name']}", header=texts["header"], **indented)


def write(folder: Path, forms: list[dict[str, str]]) -> Path:
    """A model's file with these forms."""
    names = ", ".join(f"Form_{form['name']}()" for form in forms)
    file = folder / "net.py"
    file.write_text(FILE.format(modules="".join(map(module, forms)), names=names), encoding="utf-8")
    return file


def decibels(wanted: np.ndarray, found: np.ndarray) -> float:
    """The signal-to-noise ratio over all steps."""
    wanted, found = wanted.astype(np.float64), found.astype(np.float64)
    noise = max(((found - wanted) ** 2).sum(), 1e-30)
    return float(10 * np.log10(max((wanted**2).sum(), 1e-30) / noise))


def arrays(path: Path) -> list[np.ndarray]:
    """The outputs in a file, each with its steps."""
    with np.load(path) as file:
        return [file[f"output{number}"] for number in range(len(file.files))]


def reference(folder: Path, forms: list[dict[str, str]]) -> None:
    """A model's file with these forms, its inputs, and what PyTorch alone gives for them."""
    write(folder, forms)
    warm.python("-c", REFERENCE, cwd=folder)


@pytest.mark.parametrize(
    ("group", "quantize", "target"),
    [
        pytest.param(group, *setting, marks=() if group == 2 * number else pytest.mark.thorough)
        for group in range(GROUPS)
        for number, setting in enumerate(SETTINGS)
    ],
)
def test_no_form_of_state_is_lost(group: int, quantize: str, target: str, tmp_path: Path) -> None:
    """`compile` compares sixteen steps with the quantised model, output by output; the rest is compared here."""
    folder = tmp_path
    forms = [
        form for form in FORMS[group::GROUPS] if form.get("not_on", "nothing") not in f"{quantize}-{target}"
    ]
    reference(folder, forms)
    least = LEAST[quantize]
    out = f"{quantize}-{target}"
    words = ("compile", "net.py", "--target", target, "--quantize", quantize, "-o", out, "--json")
    record = printed(sdk(*words, cwd=folder))
    assert record["check"]["status"] == "pass"
    assert record["check"]["samples"] == STEPS
    written = {row["name"]: row for row in record["state"]}
    assert {name.split(".")[1] for name in written} == {str(number) for number in range(len(forms))}
    assert all(
        row["bytes"] == np.dtype(row["dtype"]).itemsize * math.prod(row["shape"]) for row in written.values()
    )
    spans = sorted((row["arena"], row["offset"], row["offset"] + row["bytes"]) for row in written.values())
    assert all(one[0] < two[0] or one[2] <= two[1] for one, two in itertools.pairwise(spans))
    run = ("run", f"{out}/net.pte", "--simulator", "host", "--inputs", "in.npz", "-o", out, "--json")
    sdk_ok(*run, cwd=folder)
    rows = zip(
        *(arrays(folder / f"{name}.npz") for name in ("want", "forgetful", f"{out}/outputs")), strict=True
    )
    ratios = [(decibels(wanted, found), decibels(wanted, forgetful)) for wanted, forgetful, found in rows]
    assert all(found >= min(least, forgetful + 15.0) for found, forgetful in ratios), ratios


def compiled(folder: Path, *forms: str, check: bool = True) -> None:
    """Compile these forms in this process."""
    file = write(folder, [form for form in FORMS + REFUSED if form["name"] in forms])
    (folder / "check").mkdir(exist_ok=True)
    request = CompileRequest(str(file), TARGET, folder, check_folder=folder / "check" if check else None)
    worker.run_stages(request, lambda stage: None)


LOSING = ("swap_by_copies", "reset_to_constant")


@pytest.mark.parametrize("check", [True, False])
def test_a_state_that_is_not_in_the_program_fails(
    check: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --no-check too: it is read from the finished file."""
    monkeypatch.setattr(after_lowering, "keep_write_backs", lambda program: None)
    with pytest.raises(VerdictError, match=r"loses the state 'forms\.0\.[as]'"):
        compiled(tmp_path, *LOSING, check=check)
    assert not (tmp_path / "net.pte").exists()


def test_without_the_check_the_loss_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference(tmp_path, [form for form in FORMS if form["name"] in LOSING])
    monkeypatch.setattr(after_lowering, "keep_write_backs", lambda program: None)
    monkeypatch.setattr(finished_program, "find_state", lambda *arguments: ())
    compiled(tmp_path, *LOSING, check=False)
    sdk_ok("run", "net.pte", "--simulator", "host", "--inputs", "in.npz", "-o", "out", cwd=tmp_path)
    pairs = zip(arrays(tmp_path / "want.npz"), arrays(tmp_path / "out" / "outputs.npz"), strict=True)
    assert all(decibels(*pair) < 15.0 for pair in pairs)


@pytest.mark.parametrize("form", REFUSED, ids=[form["name"] for form in REFUSED])
def test_what_no_program_keeps_is_refused_with_the_way_out(form: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        compiled(tmp_path, form["name"])
    assert form["refused"] in refused.value.message
    if line := form.get("line"):
        lines = (tmp_path / "net.py").read_text().splitlines()
        number = next(number for number, text in enumerate(lines, 1) if line in text)
        assert f"net.py, line {number}" in refused.value.message
    assert form["way_out"] in refused.value.hint
