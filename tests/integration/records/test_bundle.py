"""Folders of results: every damage is named by `validate DIR`, and what was killed is incomplete."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import filesystem
from ethosu_sdk.records import bundle, validation
from tests.integration.cli import COMMAND, assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import read

ADD = GOLDEN_PTE / "add_u55.pte"
Manifest = dict[str, Any]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


def _manifest(folder: Path) -> Manifest:
    record = read(folder / bundle.MANIFEST_NAME)
    assert isinstance(record, dict)
    return record


def test_a_finished_folder_is_complete(folder: Path) -> None:
    manifest = _manifest(folder)
    assert validation.record_problems(manifest) == []
    listed = {row["path"]: row for row in manifest["files"]}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in there if not Path(name).name.startswith(".")} == {*listed, bundle.MANIFEST_NAME}
    for name, row in listed.items():
        content = (folder / name).read_bytes()
        assert (row["bytes"], row["sha256"]) == (len(content), filesystem.sha256_bytes(content))
    assert {name: row["schema"] for name, row in listed.items() if "schema" in row} == {
        "build.json": "build-result/1",
        "run.json": "run-result/1",
        "profile.json": "profile/1",
    }
    assert {row["writer"] for row in manifest["files"]} == {"run", "profile"}
    done = sdk("validate", folder, cwd=folder.parent)
    assert (done.code, "complete, " in done.out) == (0, True), done.err
    shown = sdk("validate", folder, "--json", cwd=folder.parent)
    assert json.loads(shown.out) == manifest


def _another_record(folder: Path) -> None:
    """A valid manifest over a record that is not valid: its digest is right."""
    path = folder / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"status": "pass"', '"status": "fail"', 1))
    _relisted(folder, "run.json")


def _relisted(folder: Path, name: str, **members: str) -> None:
    manifest, path = _manifest(folder), folder / name
    for row in manifest["files"]:
        if row["path"] == name:
            row |= {"bytes": path.stat().st_size, "sha256": filesystem.sha256_file(path), **members}
    (folder / bundle.MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")


def _linked(folder: Path) -> None:
    (folder / "uart.log").rename(folder.parent / "uart.log")
    (folder / "uart.log").symlink_to(folder.parent / "uart.log")


def _piped(folder: Path) -> None:
    (folder / "uart.log").unlink()
    os.mkfifo(folder / "uart.log")


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def _flipped(folder: Path) -> None:
    data = bytearray((folder / "outputs.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "outputs.npz").write_bytes(data)


def _escaping(folder: Path) -> None:
    manifest = _manifest(folder)
    manifest["files"][0]["path"] = "../../etc/passwd"
    (folder / bundle.MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda folder: (folder / "outputs.npz").unlink(), "outputs.npz is missing"),
    "longer": (lambda folder: _longer(folder / "uart.log"), "uart.log has changed: "),
    "flipped": (_flipped, "outputs.npz has changed: its SHA-256 differs"),
    "extra": (lambda folder: (folder / "new.bin").touch(), "new.bin is extra"),
    "extra in a folder": (lambda folder: (folder / "firmware" / "x").touch(), "firmware/x is extra"),
    "invalid record": (_another_record, "run.json is not a valid record: status_follows_checks"),
    "record of another kind": (
        lambda folder: _relisted(folder, "run.json", schema="build-result/1"),
        "run.json is a run-result/1, listed as build-result/1",
    ),
    "link": (_linked, "uart.log is not a regular file of the folder"),
    "pipe": (_piped, "uart.log is not a regular file of the folder"),
    "path out of the folder": (_escaping, "leaves the record's folder"),
    "no manifest": (lambda folder: (folder / bundle.MANIFEST_NAME).unlink(), "holds no manifest.json"),
    "half a manifest": (
        lambda folder: os.truncate(folder / bundle.MANIFEST_NAME, 100),
        "manifest.json is not JSON",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_every_damage_is_named(name: str, folder: Path) -> None:
    damage, said = DAMAGE[name]
    damage(folder)
    done = sdk("validate", folder, cwd=folder.parent)
    assert (done.code, done.out) == (3, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_all_that_is_wrong_is_named_at_once(folder: Path) -> None:
    for name in ("missing", "longer", "extra"):
        DAMAGE[name][0](folder)
    done = sdk("validate", folder, cwd=folder.parent)
    assert [said in done.err for said in ("outputs.npz is missing", "uart.log has", "new.bin is")] == [
        True
    ] * 3


def _incomplete(folder: Path) -> bool:
    try:
        return bool(_manifest(folder)["status"] == bundle.INCOMPLETE)
    except (OSError, ValueError):
        return False


def test_what_is_killed_is_incomplete_until_it_is_run_again(folder: Path) -> None:
    words = [COMMAND, "run", ADD, "-o", folder, "-q", "--repeat", "50"]
    with subprocess.Popen(words, cwd=folder.parent, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not _incomplete(folder) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert_clear(sdk("validate", folder, cwd=folder.parent), 3, "incomplete: `run` did not finish writing")
    assert_clear(sdk("compare", folder, folder, cwd=folder.parent), 3, "is incomplete")
    sdk_ok("run", ADD, "-o", folder, "-q", cwd=folder.parent)
    assert sdk("validate", folder, cwd=folder.parent).code == 0


def test_a_run_that_fails_leaves_its_folder_incomplete(folder: Path) -> None:
    assert_clear(sdk("run", ADD, "-o", folder, "--timeout", "0.1", "--repeat", "100", cwd=folder.parent), 6)
    assert "incomplete" in sdk("validate", folder, cwd=folder.parent).err


def test_records_that_were_changed_are_not_compared(folder: Path, finished: Path) -> None:
    _another_record(folder)
    _longer(folder / "run.json")
    assert_clear(sdk("compare", finished, folder, cwd=folder.parent), 3, "run.json has changed")


def test_folders_of_earlier_versions_can_be_read(folder: Path, finished: Path) -> None:
    (folder / bundle.MANIFEST_NAME).unlink()
    done = sdk("compare", finished, folder, cwd=folder.parent)
    assert (done.code, "no difference" in done.out) == (0, True), done.err
    assert sdk("validate", folder / "run.json", cwd=folder.parent).code == 0
