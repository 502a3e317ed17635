"""`convert` of the folder that `profile` left: every record in it that a format has a use for."""

import json
import shutil
from pathlib import Path

import pytest
from junitparser import JUnitXml

from tests.integration.conftest import FinishedRun
from tests.integration.convert.reading import convert, refused
from tests.places import GOLDEN_PTE
from tests.records import read


@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_folder_of_a_profile_converts(finished_run: FinishedRun, tmp_path: Path) -> None:
    finished = finished_run(GOLDEN_PTE / "add_u55.pte", command="profile")
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    run = read(folder / "run.json")
    (suite,) = JUnitXml.fromstring(convert(folder, "junit", tmp_path))
    assert [case.name for case in suite] == [row["name"] for row in run["verdict"]["checks"]]
    log = json.loads(convert(folder, "sarif", tmp_path))
    assert set(log["runs"][0]["properties"]["records"].values()) == {"run.json", "profile.json", "build.json"}
    rows = (folder / "profile.csv").read_text(encoding="utf-8").splitlines()
    assert len(convert(folder, "perfetto", tmp_path)) > len(rows)
    (tmp_path / "converted").unlink()
    with (folder / "run.json").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    assert "run.json has changed" in refused(tmp_path, folder, "--to", "junit")
