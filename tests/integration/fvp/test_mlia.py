"""Arm's ML Inference Advisor, unmodified, on the launchers: its Corstone backends take them for FVPs."""

import json
import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from ethosu_sdk.base import filesystem
from tests import processes
from tests.conftest import ZooPte
from tests.integration.cli import sdk_ok
from tests.own_qemu import VARIABLE
from tests.places import GOLDEN_PTE, ROOT
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

# mlia-ethos-u 0.1.0 has the Corstone backend and accepts this MLIA alone.
REQUIREMENTS = ("mlia-ethos-u==0.1.0", "mlia==0.12.2")
CACHE = ROOT / "build" / "environments"
INSTALL_TIMEOUT_S = 600


@dataclass(frozen=True)
class Backend:
    """A backend of MLIA's, and how `run` simulates its board and NPU. `beats`: event → MLIA's name of the counter."""

    name: str
    target: str
    run_options: tuple[str, ...]
    beats: dict[str, str]
    misfit: tuple[str, str]  # a program, and a target of another number of MACs


BACKENDS = (
    Backend(
        "corstone-300",
        "ethos-u55-256",
        (),
        {
            "AXI0_RD_DATA_BEAT_RECEIVED": "npu_axi0_rd_data_beat_received",
            "AXI0_WR_DATA_BEAT_WRITTEN": "npu_axi0_wr_data_beat_written",
            "AXI1_RD_DATA_BEAT_RECEIVED": "npu_axi1_rd_data_beat_received",
        },
        ("add_u55.pte", "ethos-u55-256"),
    ),
    Backend(
        "corstone-320",
        "ethos-u85-256",
        ("--board", "corstone-320", "--simulator", "qemu"),
        {
            "SRAM_RD_DATA_BEAT_RECEIVED": "npu_axi0_rd_data_beat_received",
            "SRAM_WR_DATA_BEAT_WRITTEN": "npu_axi0_wr_data_beat_written",
            "EXT_RD_DATA_BEAT_RECEIVED": "npu_axi1_rd_data_beat_received",
            "EXT_WR_DATA_BEAT_WRITTEN": "npu_axi1_wr_data_beat_written",
        },
        ("add_u85_segment.pte", "ethos-u85-512"),
    ),
)


def installed() -> Path:
    """An environment of its own with MLIA, made once for a checkout: its requirements exclude the SDK's."""
    folder = CACHE / "-".join(REQUIREMENTS)
    with filesystem.locked_folder(CACHE):
        if not (folder / ".complete").is_file():
            venv.create(folder, clear=True, with_pip=True)
            argv = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *REQUIREMENTS]
            done = processes.run(argv, timeout_s=INSTALL_TIMEOUT_S)
            if done.returncode != 0:
                pytest.skip(f"mlia cannot be installed: {done.stderr.strip().splitlines()[-1]}")
            (folder / ".complete").touch()
    return folder / "bin" / "mlia"


class Mlia:
    """MLIA with a home of its own, in which the launchers are its Corstone backends."""

    def __init__(self, program: Path, home: Path, qemu: Path) -> None:
        self._program, self._home = program, home
        self._environment = {**os.environ, "HOME": str(home), VARIABLE: str(qemu)}

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            cwd=self._home,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def check(self, program: Path, target: str, backend: str) -> subprocess.CompletedProcess[str]:
        options = ("--performance", "--json", "--noninteractive")
        return self("check", program, "-t", target, "-b", backend, *options)


@pytest.fixture(scope="module")
def mlia(own_qemu: Path, tmp_path_factory: pytest.TempPathFactory) -> Mlia:
    home = tmp_path_factory.mktemp("mlia")
    sdk_ok("fvp", "install-launchers", home / "launchers", "--layout", "fvp", cwd=home)
    mlia = Mlia(installed(), home, own_qemu)
    for backend in BACKENDS:
        done = mlia("backend", "install", backend.name, "--path", home / "launchers", "--noninteractive")
        assert f"{backend.name} successfully installed" in done.stdout + done.stderr
    return mlia


def problems(record: dict[str, Any]) -> list[str]:
    """What MLIA's own schemas say of its `record`."""
    (folder,) = (CACHE / "-".join(REQUIREMENTS)).glob("lib/*/site-packages/mlia/resources")
    schemas = [read(path) for path in folder.glob("mlia-*-schema-*.json")]
    registry: Any = Registry().with_resources(
        (content["$id"], Resource.from_contents(content)) for content in schemas
    )
    version = record["schema_version"]
    (wanted,) = [row for row in schemas if row["$id"].endswith(f"output-schema-{version}.json")]
    found = Draft202012Validator(wanted, registry=registry).iter_errors(record)
    return [error.message for error in found]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("name", ["add", "digits_cnn", "ds_cnn"])
def test_mlia_gets_the_counters_of_our_runs(
    mlia: Mlia, own_qemu: Path, zoo_pte: ZooPte, name: str, backend: Backend, tmp_path: Path
) -> None:
    """Its JSON is valid by its own schema, and its figures are those of `run`, which builds another firmware."""
    program = zoo_pte(name, backend.target).pte
    done = mlia.check(program, backend.target, backend.name)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert problems(told) == []
    assert problems({**told, "results": "none"}) != []
    (result,) = told["results"]
    assert (result["status"], result.get("errors", [])) == ("ok", [])
    assert result["producer"] == backend.name
    found = {row["name"]: row.get("value") for row in result["metrics"]}
    arguments = ("run", program, *backend.run_options, "-o", "out", "--json")
    outcome = sdk_ok(*arguments, cwd=tmp_path, env={VARIABLE: str(own_qemu)}, timeout_s=900)
    npu = json.loads(outcome.out)["npu"]
    assert found["npu_total_cycles"] == npu["cycles"]["value"] > 0
    values = {row["event"]: row["value"] for row in npu["counters"]}
    assert {name: found[name] for name in backend.beats.values()} == {
        name: values[event] for event, name in backend.beats.items()
    }
    assert any(found[name] for name in backend.beats.values())


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_mlia_is_told_of_a_program_for_another_npu(mlia: Mlia, backend: Backend) -> None:
    """The launchers hand on what the firmware says, in which MLIA finds the failure: no figures come of it."""
    program, target = backend.misfit
    done = mlia.check(GOLDEN_PTE / program, target, backend.name)
    assert done.returncode != 0
    assert "Inference failed" in done.stdout + done.stderr
