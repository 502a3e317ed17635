"""Evidence that was edited in a folder of results: every reader refuses it, or says that it was loose."""

import json
import random
from pathlib import Path

import pytest

from campaigns.attack.campaign import KINDS, Campaign, Tally
from campaigns.attack.case import Context
from campaigns.attack.kinds import edited
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.records import bundle
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record
from tests.integration.cli import assert_clear, sdk

EDITS = 24  # scripts/attack --only bundles makes thousands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of results in which a cycle is missing from run.json."""
    edited.lay(tmp_path / "out")
    path = tmp_path / "out" / "run.json"
    record = json.loads(path.read_text())
    record["npu"]["cycles"]["value"] += 1
    path.write_text(json.dumps(record, indent=2) + "\n")
    return tmp_path / "out"


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "out/run.json"),
        ("summary", "out/run.json"),
        ("convert", "out/run.json", "--to", "junit", "-o", "made.xml"),
        ("compare", "out/run.json", "out/run.json"),
        ("verify", "out/run.json"),
        ("profile", "out"),
        ("advise", "out"),
        ("report", "out"),
    ],
    ids=" ".join,
)
def test_commands_refuse_an_edited_record(words: tuple[str, ...], folder: Path) -> None:
    """The sole thing that is wrong about it is that its manifest lists another."""
    assert_clear(sdk(*words, cwd=folder.parent), 3, "run.json", "SHA-256 differs")


def test_loose_reads_it_and_says_so(folder: Path) -> None:
    validated = sdk("validate", "--loose", "out/run.json", cwd=folder.parent)
    assert (validated.code, "loose" in validated.out, "warning: loose" in validated.err) == (0, True, True)
    told = sdk("summary", "--loose", "out/run.json", cwd=folder.parent)
    assert (told.code, "\nloose: " in told.out) == (0, True)
    words = ("convert", "--loose", "out/run.json", "--to", "junit", "-o", "made.xml", "--json")
    row = json.loads(sdk(*words, cwd=folder.parent).out)["provenance"]["inputs"][0]
    assert (row["role"], row["loose"]) == ("run-result/1", True)
    assert_clear(sdk("validate", "--loose", "out", cwd=folder.parent), 2, "--loose is for a single record")


def test_random_edits_are_refused_or_loose(tmp_path: Path) -> None:
    campaign = Campaign("evidence", tmp_path / "findings", Context(shared=tmp_path))
    campaign.tallies["bundles"] = Tally()
    for number in range(EDITS):
        campaign._probe(KINDS["bundles"], number)
    assert [path.read_text() for path in (tmp_path / "findings").rglob("finding.txt")] == []
    assert campaign.tallies["bundles"].outcomes[3] > EDITS // 2


@pytest.mark.parametrize("name", sorted(edited.RECORDS))
def test_what_is_as_listed_is_read(name: str, tmp_path: Path) -> None:
    edited.lay(tmp_path / "out")
    assert read_raw_record(tmp_path / "out" / name)["schema"]


def test_a_link_to_an_edited_record_is_no_way_around(folder: Path) -> None:
    (folder.parent / "link.json").symlink_to(folder / "run.json")
    with pytest.raises(InputError, match="SHA-256 differs"):
        read_raw_record(folder.parent / "link.json")


@pytest.mark.parametrize(
    ("content", "refused"), [("{", True), ('{"schema": "bundle/1"}', True), ('{"a": 1}', False)]
)
def test_a_manifest_that_is_damaged_tells_nothing_away(content: str, refused: bool, folder: Path) -> None:
    """Another program's manifest, of a web page for example, is no evidence for or against."""
    (folder / bundle.MANIFEST_NAME).write_text(content)
    if refused:
        with pytest.raises(InputError, match="cannot be checked"):
            read_raw_record(folder / "run.json")
        reading = ReadPolicy(loose=True)
        read_raw_record(folder / "run.json", reading)
        assert reading.differences
    else:
        read_raw_record(folder / "run.json")


def test_an_edited_record_does_not_become_evidence(folder: Path) -> None:
    """A command that writes again, and leaves what it wrote before as it is, lists only what is as it was."""
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
        add("run.json", "build.json")
    manifest = bundle.read_manifest(folder)
    assert manifest is not None
    assert [row.path for row in manifest.files] == ["build.json"]


def test_random_edits_are_edits() -> None:
    choice = random.Random(1)
    content = b'{\n  "a": 1\n}\n'
    assert all(edited.edited(choice, content) != content for _ in range(200))
