"""A folder of results and a record in it are the same to every command that reads them."""

import shutil
from pathlib import Path

import pytest

from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import printed

READERS = ("inspect", "profile", "advise", "summary", "export", "report")

pytestmark = pytest.mark.qemu


def test_a_folder_and_its_record_are_read_alike(folder: Path) -> None:
    shutil.copy(GOLDEN_PTE / "add_u55.pte", folder)
    for command in READERS:
        for given in ("run", "run/run.json"):
            sdk_ok(command, given, "-q", cwd=folder.parent)
    shown = [printed(sdk("inspect", given, "--json", cwd=folder.parent)) for given in ("run", "run/run.json")]
    assert [record["file"] for record in shown] == [shown[0]["file"]] * 2
    ran = sdk_ok("run", "run/profile.json", "--simulator", "host", "-o", "again", cwd=folder.parent)
    assert "PASS" in ran.out
    shutil.copy(folder / "add_u55.pte", folder / "other.pte")  # then the record says which one is meant
    sdk_ok("inspect", "run", cwd=folder.parent)
    (folder / "run.json").unlink()
    assert_clear(sdk("inspect", "run", cwd=folder.parent), 3, "is a folder")


def test_a_conversion_lies_beside_its_records(folder: Path) -> None:
    for format_, file, opener in (
        ("junit", "junit.xml", "GitLab"),
        ("sarif", "findings.sarif", "Visual Studio Code"),
        ("perfetto", "trace.perfetto-trace", "https://ui.perfetto.dev"),
    ):
        done = sdk_ok("convert", "run", "--to", format_, cwd=folder.parent)
        assert opener in done.out
        assert (folder / file).is_file()
        assert f"run/{file}" in done.out
    assert sdk("validate", "run", cwd=folder.parent).code == 0
