"""`doctor`: every tool is made to work, broken ones are said to be so.

Stand-ins on PATH are doubles of broken tools: they answer --version, and then fail, hang, or do nothing.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.installation import doctor_command, doctor_exercises
from ethosu_sdk.records import validation
from tests import processes
from tests.integration.cli import Outcome, sdk
from tests.places import ROOT

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def stand_in(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def rows(outcome: Outcome) -> dict[str, dict[str, Any]]:
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    return {row["name"]: row for row in record["checks"]}


def assert_no_traceback(outcome: Outcome) -> None:
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err


def test_every_tool_is_made_to_work(tmp_path: Path) -> None:
    outcome = sdk("doctor", "--json", cwd=tmp_path)
    found = rows(outcome)
    assert outcome.code == 0, outcome.err
    required = {name: row for name, row in found.items() if row["required"] and name != "python"}
    assert all(row["status"] == "found" and row["exercised"] for row in required.values())
    assert required.keys() >= {
        "arm-none-eabi-g++",
        "cmake",
        "ninja",
        "flatc",
        "qemu-system-arm",
        "ethos-u-vela",
        "npu-model",
    }
    assert all(found[name]["exercised"] for name in ("llvm-mc-19", "llvm-mca-19"))
    runners = found["mlia-ethos-u"]  # optional, and installed by scripts/setup
    assert (runners["required"], runners["status"]) == (False, "found")
    assert "SHA-256" in runners["exercised"]
    assert "Apache-2.0" in runners["detail"]
    # The lock speaks of Debian's packages, which are what this machine has.
    assert {found[name]["lock"]["status"] for name in ("cmake", "ninja", "flatc", "qemu-system-arm")} == {
        "agrees"
    }
    assert list(tmp_path.iterdir()) == []


def test_broken_tools_are_said_to_be_broken(tmp_path: Path) -> None:
    programs = filesystem.make_directory(tmp_path / "programs")
    version = 'case "$*" in -dumpfullversion|--version) echo 12.2.1; exit;; esac'
    stand_in(programs, "arm-none-eabi-g++", f"{version}\necho 'ld: cannot find -lstdc++' >&2; exit 1")
    stand_in(programs, "cmake", "sleep 300")
    stand_in(programs, "ninja", "echo 1.8.2")
    stand_in(programs, "flatc", "exit 1")
    stand_in(programs, "qemu-system-arm", "echo 'no version here'")
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    outcome = sdk("doctor", "--json", cwd=tmp_path, env=environment, timeout_s=60)
    found = rows(outcome)
    assert outcome.code == 4
    assert_no_traceback(outcome)
    compiler = found["arm-none-eabi-g++"]
    assert (compiler["status"], "cannot find -lstdc++" in compiler["detail"]) == ("broken", True)
    assert (found["cmake"]["status"], "did not end within" in found["cmake"]["detail"]) == ("broken", True)
    assert (found["ninja"]["status"], found["ninja"]["version"]) == ("too old", "1.8.2")
    assert (found["flatc"]["status"], found["qemu-system-arm"]["status"]) == ("broken", "broken")
    assert all("apt-get install" in found[name]["fix"] for name in ("cmake", "ninja", "qemu-system-arm"))
    assert found["npu-model"]["status"] == "found"


def test_missing_tools_are_named_with_the_fix(tmp_path: Path) -> None:
    outcome = sdk("doctor", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert outcome.code == 4
    assert_no_traceback(outcome)
    for words in (
        "arm-none-eabi-g++: missing",
        "apt-get install gcc-arm-none-eabi",
        "not ready: arm-none-eabi-g++",
    ):
        assert words in " ".join((outcome.out + outcome.err).split())


@pytest.mark.parametrize(
    ("name", "exercise", "script", "reason"),
    [
        ("arm-none-eabi-g++", doctor_exercises.compile_firmware, "exit 0", "wrote no file"),
        ("qemu-system-arm", doctor_exercises.boot_firmware, "exit 0", "the booted firmware failed"),
        ("qemu-system-arm", doctor_exercises.boot_firmware, "exit 42", "the booted firmware failed"),
        ("qemu-system-arm", doctor_exercises.boot_firmware, "kill -9 $$", "exit status -9"),
        ("ninja", doctor_exercises.build, "exit 0", "built nothing"),
        ("flatc", doctor_exercises.compile_schema, "exit 0", "wrote no header"),
        ("llvm-mc-19", doctor_exercises.disassemble, "exit 0", "does not read the code"),
        ("llvm-mca-19", doctor_exercises.price, "echo '{}'", "did not answer with figures"),
    ],
)
def test_a_tool_that_only_pretends_is_broken(
    name: str, exercise: Any, script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers --version as the real one does, ends well, and has done nothing."""
    version = tools.probe(name).version
    folder = filesystem.make_directory(tmp_path / "work")
    (folder / "probe.elf").write_bytes(b"\x7fELF")
    (filesystem.make_directory(folder / "made") / "build.ninja").write_text("")
    if name == "arm-none-eabi-g++":
        (folder / "probe.elf").unlink()
    programs = filesystem.make_directory(tmp_path / "bin")
    stand_in(
        programs, name, f'case "$*" in -dumpfullversion|--version) echo {version}; exit;; esac\n{script}'
    )
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    tools.probe.cache_clear()
    try:
        row = doctor_command._exercised(name, exercise, folder)
    finally:
        tools.probe.cache_clear()
    assert (row.status, reason in (row.detail or "")) == ("broken", True), row
    assert row.fix


def test_the_environments_flatc_is_not_the_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ExecuTorch's wheel puts one beside Python, of another version than the system's headers."""
    programs = filesystem.make_directory(tmp_path / "bin")
    real = tools.probe("flatc").version
    stand_in(programs, "flatc", "echo flatc version 24.3.25")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for prefix, version in ((tmp_path, real), (Path(sys.prefix), "24.3.25")):
        monkeypatch.setattr(sys, "prefix", str(prefix))
        tools.probe.cache_clear()
        found = tools.probe("flatc").version
        tools.probe.cache_clear()
        assert found == version


def test_a_wrong_npu_model_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One bit of the expected output changed: the comparison really compares."""
    data = filesystem.make_directory(tmp_path / "data")
    text = (doctor_exercises.DATA / "sample.toml").read_text()
    key, value = text.rsplit('output = "', 1)
    (data / "sample.toml").write_text(f'{key}output = "{"A" if value[0] != "A" else "B"}{value[1:]}')
    monkeypatch.setattr(doctor_exercises, "DATA", data)
    row = doctor_command._npu_model()
    assert (row.status, "TOSA" in (row.detail or "")) == ("broken", True)


@pytest.mark.torch
def test_the_sample_is_velas_and_its_output_the_tosa_reference_models() -> None:
    done = processes.run([sys.executable, ROOT / "scripts" / "make-doctor-sample", "--check"])
    assert done.returncode == 0, done.stdout + done.stderr
