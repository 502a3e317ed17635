"""`advise --try`: every change was compiled again; the best is at least as good as what a person finds by hand."""

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import filesystem
from tests import kept
from tests.integration.advise.networks import NETWORKS
from tests.integration.cli import COMMAND, assert_clear, sdk, sdk_ok
from tests.records import printed, valid

pytestmark = [pytest.mark.torch]

Record = dict[str, Any]
_HOST = ("--simulator", "host")
_CHANNELS_LAST = "example_inputs = tuple(x.to(memory_format=torch.channels_last) for x in example_inputs)"


@dataclass(frozen=True)
class Tried:
    """A network with what was tried: the record, and what the terminal showed."""

    record: Record
    shown: str

    @property
    def trials(self) -> dict[str, Record]:
        """The trials by their names, the best first."""
        return {row["name"]: row for row in self.record["tried"]["trials"]}

    @property
    def best(self) -> Record:
        """The first."""
        return next(iter(self.trials.values()))


def figure(trial: Record, metric: str) -> tuple[float, float]:
    """Before and after."""
    (row,) = [row for row in trial["figures"] if row["metric"] == metric]
    return row["before"], row["after"]


@pytest.fixture(scope="session")
def networks(shared_folder: Path) -> Path:
    """The folder with the networks' file."""
    folder = filesystem.make_directory(shared_folder / "tries")
    with filesystem.locked_folder(folder):
        (folder / "nets.py").write_text(NETWORKS, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tried(networks: Path, qemu_plugin: Path) -> Callable[..., Tried]:
    """Try changes of a network once a session: of the kinds `kinds`, on the host where `host`."""

    def of(model: str, kinds: str, *, host: bool = True) -> Tried:
        def make(out: Path) -> None:
            if host:
                sdk_ok("run", model, *_HOST, "-o", out, "-q", cwd=networks)
            words = ("advise", out if host else model, "--try-only", kinds, "-v", "-o", out)
            done = sdk_ok(*words, cwd=networks, env={"COLUMNS": "300"}, timeout_s=600)
            (out / "shown.txt").write_text(done.out, encoding="utf-8")

        out = kept.folder(networks / model.rpartition(":")[2], make, NETWORKS, kinds)
        record = valid(out / "advice.json")
        return Tried(record, (out / "shown.txt").read_text(encoding="utf-8"))

    return of


def by_hand(
    folder: Path,
    name: str,
    lines: tuple[str, ...],
    *options: str,
    begin: str = "from nets import *\nimport torch\nmodel, example_inputs = {}()",
    where: tuple[str, ...] = _HOST,
) -> Record:
    """The run of the network `name`, as a person changes it: `lines` in a file of its own, options."""
    file = f"hand_{name}.py"
    made = (begin.format(name), *lines, "")
    (folder / file).write_text("\n".join(made), encoding="utf-8")
    sdk_ok("compile", f"{file}:model", *options, "-o", f"hand_{name}", "-q", cwd=folder)
    (program,) = (folder / f"hand_{name}").glob("*.pte")
    done = sdk("run", program, *where, "-q", "--json", cwd=folder)
    return printed(done)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kinds", "lines", "options"),
    [
        pytest.param(
            "mobilenet",
            "program,weights",
            (_CHANNELS_LAST,),
            ("--memory-mode", "Sram_Only"),
            id="MobileNetV2's blocks",
        ),
        pytest.param("transformer", "program", (), ("--memory-mode", "Sram_Only"), id="transformer"),
        pytest.param("lstm", "program", (), ("--memory-mode", "Sram_Only"), id="LSTM"),
    ],
)
def test_at_least_what_a_person_gets(
    name: str,
    kinds: str,
    lines: tuple[str, ...],
    options: tuple[str, ...],
    tried: Callable[..., Tried],
    networks: Path,
) -> None:
    found = tried(f"nets.py:{name}", kinds)
    hand = by_hand(networks, name, lines, *options)
    before, after = figure(found.best, "NPU cycles")
    assert found.best["state"] == "better"
    assert after <= hand["npu"]["cycles"]["value"] < before
    assert found.best["outputs"]["state"] in ("equal", "close")


@pytest.mark.thorough
def test_pruned_weights_break_outputs(tried: Callable[..., Tried]) -> None:
    """Negative control: it saves cycles and flash, and is not advised."""
    found = tried("nets.py:mobilenet", "program,weights")
    pruned = found.trials["prune-half"]
    before, after = figure(pruned, "flash")
    assert after < before
    assert (pruned["state"], pruned["outputs"]["state"]) == ("broken", "broken")
    assert pruned["outputs"]["sqnr_after_db"] < 20 < pruned["outputs"]["sqnr_before_db"]
    assert all("prune-half" not in row["parts"] for row in found.trials.values() if row is not pruned)
    assert "prune-half" in found.shown.partition("tried, and not advised")[2]


@pytest.mark.thorough
@pytest.mark.toolchain
@pytest.mark.qemu
def test_unet(tried: Callable[..., Tried], networks: Path) -> None:
    """What `compile` makes of a network by itself costs little more than what a person makes of it."""
    lines = (
        "pool = torch.nn.AvgPool2d",
        "model.up = nn.Sequential(",
        "    nn.Upsample(scale_factor=2), pool(2, 1, padding=1, count_include_pad=False), pool(2, 1)",
        ")",
    )
    where = ("--simulator", "qemu", "--cpu-cycles")
    hand, own = (by_hand(networks, "unet", changed, where=where) for changed in (lines, ()))
    cycles = [run["npu"]["cycles"]["value"] + run["cpu"]["cycles"]["value"] for run in (hand, own)]
    assert cycles[1] <= 1.02 * cycles[0]
    assert "nearest-resizing" not in tried("nets.py:unet", "program,model", host=False).trials


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.thorough
def test_every_operator_on_the_cpu_has_a_line(networks: Path) -> None:
    """By the constraints that ExecuTorch's partitioner states; the cycles are those of the profile."""
    for words in (("run", "nets.py:unet", "--as-written", "--cpu-cycles"), ("profile", "written")):
        sdk_ok(*words, "-o", "written", "-q", cwd=networks)
    sdk_ok("advise", "written", "-q", cwd=networks)
    rows = valid(networks / "written" / "advice.json")["cpu"]
    resizing = [row for row in rows if row["name"] == "aten::upsample_bilinear2d.vec_out"]
    assert [row["calls"] for row in resizing] == [1, 1]
    for row in resizing:
        assert "nearest resizing alone, by 2, 4 or 8" in row["constraint"]
        assert "(up)" in row["where"]
        assert row["cycles"] > row["border_cycles"] > 0
        assert row["replacement"]
        assert row["results"]
    conversions = [row for row in rows if row not in resizing]
    assert sum(row["calls"] for row in conversions) == 6
    assert {row["why"] for row in conversions} == {
        "conversion between floating point and quantised values",
        "conversion for an operator on the CPU",
    }


_DS_CNN = """import torch
from ethosu_sdk.compile.zoo.random_weights import ds_cnn
made = ds_cnn()
model, example_inputs, calibration = made.module, made.example_inputs, made.calibration"""
_MEAN = (
    "class Mean(torch.nn.Module):",
    "    def forward(self, x):",
    "        return x[:, :, :24, :5].mean((2, 3), keepdim=True)",
    "(pool,) = [name for name, part in model.named_modules() if isinstance(part, torch.nn.AvgPool2d)]",
    "model.set_submodule(pool, Mean())",
)


@pytest.mark.toolchain
@pytest.mark.qemu
def test_ds_cnn(tried: Callable[..., Tried], networks: Path) -> None:
    """NPU and CPU together take at most what they take of the network as a person changes it."""
    found = tried("zoo:ds_cnn", "program,model,target", host=False)
    best, trials = found.best, found.trials
    before, after = figure(best, "total cycles")
    hand = by_hand(
        networks,
        "ds_cnn",
        _MEAN,
        "--io",
        "int8",
        begin=_DS_CNN,
        where=("--simulator", "qemu", "--cpu-cycles"),
    )
    assert after <= hand["npu"]["cycles"]["value"] + hand["cpu"]["cycles"]["value"] < before
    assert best["gain"] == pytest.approx(1 - after / before, abs=1e-6)
    assert best["gain"] == max(row["gain"] for row in trials.values() if row["state"] == "better")
    assert trials["int8-io"]["state"] == "better"
    assert not any(row["name"] == "aten::avg_pool2d.out" for row in found.record["cpu"])


@pytest.mark.toolchain
@pytest.mark.qemu
def test_half_of_the_mac_unit_is_worse(tried: Callable[..., Tried]) -> None:
    """Negative control: an NPU with half the MACs computes the same, takes longer, and is not advised."""
    found = tried("zoo:ds_cnn", "program,model,target", host=False)
    smaller = found.trials["target-ethos-u55-64"]
    (before, after), (npu_before, npu_after) = (
        figure(smaller, name) for name in ("total cycles", "NPU cycles")
    )
    assert (smaller["state"], smaller["outputs"]["state"]) == ("worse", "equal")
    assert npu_after > 1.2 * npu_before
    assert smaller["gain"] == pytest.approx(1 - after / before, abs=1e-6)
    assert smaller["gain"] < -0.01
    worse = [name for name, row in found.trials.items() if row["state"] == "worse"]
    helps, _, not_advised = found.shown.partition("tried, and not advised")
    assert "target-ethos-u55-64" in worse
    assert all(f"{name} " in not_advised and f"{name}: " not in helps for name in worse)
    assert not any(set(worse) & set(row["parts"]) for row in found.trials.values() if len(row["parts"]) > 1)


@pytest.mark.thorough
@pytest.mark.toolchain
def test_a_program_that_is_too_large(tried: Callable[..., Tried], networks: Path) -> None:
    assert_clear(sdk("build", networks / "none.pte", cwd=networks), 3)
    found = tried("nets.py:large", "program", host=False)
    assert (found.record["tried"]["judged_by"], found.record["tried"]["fits"]) == ("fit", False)
    assert found.best["fits"]
    assert "optimise-size" in found.best["parts"]
    (program,) = (networks / "large").glob("*.pte")
    refused = sdk("build", program, cwd=networks)
    assert_clear(
        refused, 5, "does not fit", "--extra-vela-flag=--optimise=Size", "advise nets.py:large --try"
    )
    sdk_ok("compile", "nets.py:large", "--extra-vela-flag=--optimise=Size", "-o", "fits", "-q", cwd=networks)
    sdk_ok("build", "fits/nets.pte", "-q", cwd=networks)


def test_what_cannot_be_tried_is_refused(tried: Callable[..., Tried], networks: Path, tmp_path: Path) -> None:
    assert_clear(sdk("advise", "x", "--try-only", "wheights", cwd=tmp_path), 2, "weights")
    tried("nets.py:lstm", "program")
    folder = networks / "lstm"
    assert_clear(sdk("advise", folder, "--try", cwd=tmp_path), 3, "there is no model file nets.py")
    (tmp_path / "nets.py").write_text(NETWORKS + "\n", encoding="utf-8")
    assert_clear(sdk("advise", folder, "--try", "-o", tmp_path, cwd=tmp_path), 3, "not the file any more")


def test_what_was_tried_until_an_interrupt_is_kept(tried: Callable[..., Tried], networks: Path) -> None:
    tried("nets.py:lstm", "program")
    command = [COMMAND, "advise", "lstm", "--try-only", "program", "-o", "stopped"]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=networks, **pipes) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "trying 1 of" in line:
                process.send_signal(signal.SIGINT)
                break
        process.stderr.read()
        assert process.wait(60) == 130
    record = valid(networks / "stopped" / "advice.json")
    assert record["tried"]["trials"]
    assert record["tried"]["left"]
    assert not list((networks / "stopped").glob(".try-*"))
