"""Programs for a processor without an NPU, and what an Ethos-U leaves to the Cortex-M backend, as users run them.

The references are ExecuTorch's own in Python, which `compile` executes; a record holds how many elements have their
bits.
"""

from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.integration import guide
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.cortex_m import refused_models
from tests.places import ROOT
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

LARGE = "mobilenet_v2"  # takes longer than the others together
NETWORKS = [
    pytest.param(name, marks=pytest.mark.thorough if name == LARGE else ()) for name in refused_models.ZOO
]
NHWC = "N, H, W, C tensors described as N, C, H, W in channels-last order"
# The networks for which Arm's runner has all operators, and how many of the calls it has in another form.
ON_ARMS_RUNNER = {"ds_cnn": 11, "resnet8": 13, "mobilenet_v1_025": 28, "deep_autoencoder": 0}
POOLING = "cortex_m::quantized_avg_pool2d_nhwc.out"
ROUNDING = "rounds a half away from zero in cortex_m::quantized_avg_pool2d"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_the_references_bits_on_cortex_m55(name: str, tmp_path: Path) -> None:
    runtime = "both" if name in ON_ARMS_RUNNER else "own"
    options = ("--target", "cortex-m55", "--runtime", runtime, "-o", "out", "-q")
    outcome = sdk("run", f"zoo:{name}", *options, cwd=tmp_path)
    record = read(tmp_path / "out" / f"{name}.compile.json")
    called = {row["name"] for row in record["cpu_operators"]}
    # How this processor rounds the weights decides whether an average is a tie, which Arm's runner rounds otherwise.
    tie = POOLING in called and ROUNDING in " ".join(outcome.err.split())
    assert outcome.code == (7 if tie else 0), outcome.err
    assert record["core"] == "cortex-m55"
    assert "target" not in record
    assert record["delegates"] == []
    assert called
    assert all(row.startswith("cortex_m::") for row in called)
    dialect = record["check"]["dialect"]
    assert dialect["equal"] == dialect["elements"] > 0
    run = read(tmp_path / "out" / "run.json")
    assert run["board"] == "corstone-300"
    # The firmware on QEMU gives what the host simulator gave, whose digest the check has.
    assert [row["sha256"] for row in run["outputs"]] == [row["sha256"] for row in record["check"]["outputs"]]
    if name in ON_ARMS_RUNNER:
        step = record["check"]["outputs"][0]["step"]
        check_arms_runner(name, run, tmp_path / "out", allowed=1.5 * step if tie else 0)


def check_arms_runner(name: str, run: dict[str, Any], folder: Path, *, allowed: float) -> None:
    """Arm's kernels give the same values, and the record says which calls they have in another form."""
    with (
        numpy.load(folder / "outputs.npz") as own,
        numpy.load(folder / "outputs-executorch.npz") as arms,
    ):
        assert numpy.abs(own["output0"] - arms["output0"]).max() <= allowed
        assert allowed or own["output0"].tobytes() == arms["output0"].tobytes()
        assert numpy.unique(own["output0"]).size > 1
    rows = run["second_opinion"]["runtime"].get("adapted", {"operators": []})["operators"]
    assert sum(row["calls"] for row in rows) == ON_ARMS_RUNNER[name]
    assert all((NHWC in row["changes"]) == ("_nhwc" in row["name"]) for row in rows)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_refused_operator_gives_the_references_bits_between_delegates(name: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.integration.cortex_m.refused_models import with_refused\n"
        f"globals().update(with_refused({name!r}))\n"
    )
    sdk_ok("run", "net.py", "--as-written", "--fallback", "cortex-m", "-o", "out", "-q", cwd=tmp_path)
    record = read(tmp_path / "out" / "net.compile.json")
    assert len(record["delegates"]) >= 2
    assert POOLING in {row["name"] for row in record["cpu_operators"]}
    dialect = record["check"]["dialect"]
    assert dialect["equal"] == dialect["elements"] > 0
    run = read(tmp_path / "out" / "run.json")
    assert [row["sha256"] for row in run["outputs"]] == [row["sha256"] for row in record["check"]["outputs"]]


def test_without_the_fallback_the_portable_kernel_stays(tmp_path: Path) -> None:
    options = ("--as-written", "--fallback", "portable", "-o", "out", "-q")
    assert sdk("compile", "zoo:ds_cnn", *options, cwd=tmp_path).code == 0
    record = read(tmp_path / "out" / "ds_cnn.compile.json")
    assert _foretold(record)["aten::avg_pool2d.out"] == [POOLING]
    assert record["layout_changes"] == {"calls": 0, "bytes": 0}
    assert "dialect" not in record["check"]


def _foretold(record: dict[str, Any]) -> dict[str, list[str]]:
    """The operators of the Cortex-M backend that the record names for calls of others, by their names."""
    return {
        row["name"]: [
            site["cortex_m"] for site in row["sites"] for _ in range(site["calls"]) if "cortex_m" in site
        ]
        for row in record["cpu_operators"]
    }


def test_operators_that_the_backend_would_take_are_foretold(tmp_path: Path) -> None:
    """By the backend itself: the program with its passes has those operators, and no others that compute."""
    (tmp_path / "net.py").write_text(refused_models.MANY, encoding="utf-8")
    found = []
    for fallback in ("portable", "cortex-m"):
        options = ("--no-delegate", "--no-check", "--fallback", fallback, "-o", fallback, "-q")
        assert sdk("compile", "net.py", *options, cwd=tmp_path).code == 0
        found.append(read(tmp_path / fallback / "net.compile.json"))
    foretold = sorted(name for names in _foretold(found[0]).values() for name in names)
    computing = [row for row in found[1]["cpu_operators"] if row["name"].startswith("cortex_m::")]
    conversions = (
        *(f"cortex_m::{name}quantize_per_tensor.out" for name in ("", "de")),
        "cortex_m::transpose.out",
    )
    assert foretold == sorted(
        row["name"] for row in computing if row["name"] not in conversions for _ in range(row["calls"])
    )
    assert len(foretold) == 12
    # Minimum and maximum have other scales than their inputs here: the backend refuses them.
    assert _foretold(found[0])["aten::minimum.out"] == _foretold(found[0])["aten::maximum.out"] == []
    assert not any(_foretold(found[1]).values())


def test_the_commands_of_the_guide_run(tmp_path: Path) -> None:
    guide.run("cortex-m.md", tmp_path, count=4)
    record = read(tmp_path / "build" / "ds_cnn-ethos-u55-128-cortex-m-as-written" / "ds_cnn.compile.json")
    assert record["options"]["fallback"] == "cortex-m"
    assert record["layout_changes"]["calls"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "cortex-m56"), "did you mean 'cortex-m85'"),
        (("--target", "cortex-m55", "--memory-mode", "Sram_Only"), "leave --memory-mode out"),
        (("--target", "cortex-m55", "--quantize", "int16"), "use --quantize int8"),
        (("--target", "cortex-m55", "--fallback", "cortex-m"), "leave --fallback out"),
        (("--target", "cortex-m85", "--system", "alif-e8-hp"), "--target cortex-m55"),
        (("--fallback", "cortex"), "did you mean 'cortex-m'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    assert_clear(sdk("compile", "zoo:ds_cnn", *options, cwd=tmp_path), 2, words)


def test_a_program_for_cortex_m85_has_its_board(tmp_path: Path) -> None:
    assert sdk("compile", "zoo:ds_cnn", "--target", "cortex-m85", "-o", "out", "-q", cwd=tmp_path).code == 0
    assert sdk("build", "out/ds_cnn.pte", "-q", cwd=tmp_path).code == 0
    assert read(tmp_path / "out" / "build.json")["board"] == "corstone-320"


def test_a_processor_is_a_row_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'models = ["zoo:deep_autoencoder"]\ntargets = ["ethos-u55-128", "cortex-m55"]\nsimulators = ["host"]\n'
        'quantize = ["default", "int16"]\n'
    )
    outcome = sdk_ok("sweep", "sweep.toml", "-o", "store", "--dry-run", "--json", cwd=tmp_path)
    assert "there is no int16 for cortex-m55" in outcome.out
    (tmp_path / "sweep.toml").write_text(
        'models = ["zoo:deep_autoencoder"]\ntargets = ["cortex-m55"]\nsimulators = ["host"]\n'
    )
    sdk_ok("sweep", "sweep.toml", "-o", "store", "-q", cwd=tmp_path)
    (cell,) = (tmp_path / "store").rglob("cell.json")
    record = read(cell)
    assert record["status"] == "pass"
    assert record["cell"]["target"] == "cortex-m55"
    assert record["cell"]["memory_mode"] == "none"
