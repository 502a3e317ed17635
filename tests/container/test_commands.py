"""`build`, `run`, `compile` and `doctor` in a locked-down container, against the same commands on the host."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.records import provenance, validation
from tests.container.conftest import SLOWNESS, STRANGER, Image
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE, ROOT

pytestmark = pytest.mark.container

MODELS = ("add_u55", "conv_u65_int8", "softmax")
# Where host and container may differ: the container has its own programs, without a checkout.
PLACES = ("provenance", "tool", "simulator")


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert validation.record_problems(record) == []
    return record


def comparable(folder: Path) -> dict[str, Any]:
    """What a run's record must have in common with that of the same run elsewhere."""
    record = provenance.comparable(read(folder / "run.json"))
    for pool in record["memory"].get("pools", ()):
        if pool["name"] == "stack":  # the clock's interrupt finds it at any depth
            del pool["used_bytes"]
    return record


@pytest.fixture(scope="module")
def host_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Model → the folder of its run on the host."""
    folder = tmp_path_factory.mktemp("host")
    for model in MODELS:
        outcome = sdk("run", GOLDEN_PTE / f"{model}.pte", "-o", folder / model, cwd=folder)
        assert outcome.code == 0, outcome.err
    return {model: folder / model for model in MODELS}


def put(model: str, work: Path) -> str:
    shutil.copy(GOLDEN_PTE / f"{model}.pte", work)
    return f"{model}.pte"


@pytest.mark.parametrize("model", MODELS)
def test_run_gives_the_hosts_outputs(slim: Image, model: str, work: Path, host_run: dict[str, Path]) -> None:
    outcome = slim.run("run", put(model, work), "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    expected, got = host_run[model], work / "out"
    assert (got / "outputs.npz").read_bytes() == (expected / "outputs.npz").read_bytes()
    ours, theirs = (comparable(folder) for folder in (got, expected))
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    assert different <= set(PLACES)
    elfs = [(folder / "executor_runner.elf").read_bytes() for folder in (got, expected)]
    assert elfs[0] == elfs[1]
    assert {path.stat().st_uid for path in got.iterdir()} == {STRANGER}


def test_an_ethos_u85_runs_on_its_own_board(image: Image, work: Path) -> None:
    """The outputs are the sum; NPU figures are those of corstone-300, on Debian's QEMU; another sum is noticed."""
    name = put("add_u85_segment", work)
    given = np.array([-(2**30), 7, 0, 12345, -1], np.int32)
    npz.write_npz(work / "in.npz", {"input0": given})
    npz.write_npz(work / "want.npz", {"output0": given + given})
    npz.write_npz(work / "other.npz", {"output0": given + given + 1})
    arguments = ("run", name, "--simulator", "qemu", "--inputs", "in.npz", "--expect")
    found = {}
    for board in ("corstone-320", "corstone-300"):
        outcome = image.run(*arguments, "want.npz", "--board", board, "-o", board, work=work)
        assert outcome.code == 0, outcome.err
        found[board] = read(work / board / "run.json")
        assert found[board]["board"] == board
    assert "in a QEMU of its own build" in found["corstone-320"]["simulator"]["fidelity"]
    assert found["corstone-320"]["npu"] == found["corstone-300"]["npu"]
    outcome = image.run(*arguments, "other.npz", "--board", "corstone-320", "-o", "other", work=work)
    assert outcome.code == 7, outcome.err


def test_the_wrapper_works_like_an_installed_command(slim: Image, tmp_path: Path) -> None:
    """ethosu-sdk-docker: relative and absolute paths, the caller's files, a kept cache, exit statuses."""
    place = tmp_path / "my work"
    place.mkdir()
    put("add_u55", place)
    environment = {**os.environ, "ETHOSU_SDK_IMAGE": slim.name, "ETHOSU_SDK_CACHE": str(tmp_path / "cache")}

    def wrapper(*words: str | Path) -> subprocess.CompletedProcess[str]:
        argv = [ROOT / "ethosu-sdk-docker", *words]
        return subprocess.run(
            argv,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    first = wrapper("run", "add_u55.pte", "-o", place / "first")
    assert first.returncode == 0, first.stderr
    assert {path.stat().st_uid for path in (place / "first").iterdir()} == {os.getuid()}
    assert any((tmp_path / "cache").iterdir())
    again = wrapper("run", "add_u55.pte", "-o", "second")
    assert again.returncode == 0, again.stderr
    assert (place / "second" / "outputs.npz").read_bytes() == (place / "first" / "outputs.npz").read_bytes()
    assert wrapper("run", "absent.pte").returncode == 3


def test_full_runs_what_slim_runs(full: Image, work: Path, host_run: dict[str, Path]) -> None:
    outcome = full.run("run", put("add_u55", work), "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    assert (work / "out" / "outputs.npz").read_bytes() == (host_run["add_u55"] / "outputs.npz").read_bytes()


def test_the_host_simulator_needs_no_compiler(slim: Image, work: Path, host_run: dict[str, Path]) -> None:
    outcome = slim.run("run", put("softmax", work), "--simulator", "host", "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    assert (work / "out" / "outputs.npz").is_file()


def test_build_gives_the_same_firmware_with_and_without_prebuilt_objects(slim: Image, work: Path) -> None:
    """Objects that the image ships save time and change nothing."""
    name = put("add_u55", work)
    took = {}
    for kind, options in (("shipped", ()), ("anew", ("-e", "ETHOSU_SDK_PREBUILT="))):
        start = time.monotonic()
        outcome = slim.run("build", name, "-o", kind, work=work, options=options)
        took[kind] = time.monotonic() - start
        assert outcome.code == 0, outcome.err
    elfs = [(work / kind / "executor_runner.elf").read_bytes() for kind in took]
    assert elfs[0] == elfs[1]
    assert took["shipped"] < took["anew"]


def test_compile_gives_the_hosts_program(full: Image, work: Path, tmp_path: Path) -> None:
    arguments = ("compile", "zoo:add", "--target", "ethos-u55-128")
    outcome = full.run(*arguments, "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    host = sdk(*arguments, "-o", tmp_path / "host", cwd=tmp_path)
    assert host.code == 0, host.err
    for name in ("add.pte", "add.io.npz"):
        assert (work / "out" / name).read_bytes() == (tmp_path / "host" / name).read_bytes()


def test_compile_in_slim_says_what_it_lacks(slim: Image, work: Path) -> None:
    outcome = slim.run("compile", "zoo:add", work=work)
    assert outcome.code == 4
    assert "torch" in outcome.err


def test_doctor_is_content(image: Image) -> None:
    outcome = image.run("doctor", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    (row,) = [row for row in record["checks"] if row["name"] == "qemu-corstone"]
    assert row["status"] == "found"


def test_doctor_is_quick(slim: Image) -> None:
    start = time.monotonic()
    assert slim.run("doctor").code == 0
    assert time.monotonic() - start < 10 * SLOWNESS


def test_a_folder_of_somebody_else_is_named(slim: Image, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    os.chmod(folder, 0o755)  # root's: the container's user may read it
    outcome = slim.run("build", put("softmax", folder), work=folder)
    assert outcome.code == 5
    assert "Permission denied" in outcome.err
    assert "--user" in outcome.err


def test_stop_ends_a_build_at_once(slim: Image, work: Path) -> None:
    """SIGTERM to the first process of a container does nothing unless it is handled: docker would wait, then kill."""
    name = put("softmax", work)
    with slim.started(
        "build", name, "-o", "out", work=work, options=("-e", "ETHOSU_SDK_PREBUILT=")
    ) as container:
        deadline = time.monotonic() + 60
        while not (work / "out").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        start = time.monotonic()
        code = container.stop(patience_s=60)
        took_s = time.monotonic() - start
    assert code == 130
    assert took_s < 30
