"""scripts/build-qemu: a second call finds what the first has built; only the locked sources are taken."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import processes
from tests.own_qemu import VARIABLE
from tests.places import ROOT

SCRIPT = ROOT / "scripts" / "build-qemu"
pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def build(cache: Path | None, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ETHOSU_SDK_CACHE"}
    if cache is not None:
        environment["ETHOSU_SDK_CACHE"] = str(cache)
    return subprocess.run(
        [SCRIPT, *words], env=environment, capture_output=True, text=True, timeout=3600, check=False
    )


@pytest.mark.skipif(VARIABLE in os.environ, reason="another QEMU was chosen: none is built")
def test_a_second_call_finds_what_the_first_has_built(own_qemu: Path) -> None:
    done = build(None)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (
        0,
        str(own_qemu),
        "",
    )  # nothing is done, nor said
    assert (own_qemu.parent.parent / "current" / own_qemu.name).resolve() == own_qemu.resolve()
    assert (own_qemu.with_name("LICENSE")).read_text().lstrip().startswith("GNU GENERAL PUBLIC LICENSE")


def test_the_version_names_the_locked_source(own_qemu: Path) -> None:
    (row,) = json.loads((ROOT / "toolchain.lock.json").read_text())["source"]
    shown = processes.run([own_qemu, "--version"], check=True).stdout
    assert f"ethosu-sdk, Debian {row['version']}" in shown


def test_sources_that_are_not_the_locked_ones_are_refused(own_qemu: Path, tmp_path: Path) -> None:
    (row,) = json.loads((ROOT / "toolchain.lock.json").read_text())["source"]
    for name in row["files"]:
        (tmp_path / name).write_bytes(b"something else")
    done = build(tmp_path / "cache", "--offline-source", tmp_path)
    assert done.returncode == 5
    assert "is not what toolchain.lock.json says" in done.stderr
    assert not list((tmp_path / "cache").rglob("qemu-corstone"))[
        1:
    ]  # the folder of that name, and no program


def test_a_folder_that_qemus_build_does_not_take_is_named_first(
    own_qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache with a space in its path is left for the folder of temporary files, which has one here too."""
    temporary = tmp_path / "new comer"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = build(temporary / "cache")
    assert done.returncode == 5
    assert f"QEMU cannot be built in {temporary}" in done.stderr
    assert "TMPDIR" in done.stderr
    kept = build(tmp_path / "cache", "--keep", tmp_path / "a:b")
    assert (kept.returncode, f"QEMU cannot be built in {tmp_path / 'a:b'}" in kept.stderr) == (5, True)
