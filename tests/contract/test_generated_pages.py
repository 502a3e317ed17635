"""Pages that are made from the program hold all of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ethosu_sdk
from ethosu_sdk.compile.front_ends.table import FRONT_ENDS
from ethosu_sdk.records import kinds
from tests.places import ROOT

COMMAND = Path(sys.executable).with_name("ethosu-sdk")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import docs_pages

    return {
        **{f"command {name}": page for name, page in docs_pages.commands().items()},
        "python": docs_pages.python_page(),
        "records": docs_pages.records_page(),
    }


def test_the_page_of_model_files_has_the_table_of_front_ends() -> None:
    page = (ROOT / "docs" / "guide" / "model-files.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `FILE")]
    assert [(row[0].split(".")[1].split("`")[0].split("[")[0], row[-1].rstrip(" |")) for row in rows] == [
        (row.ending[1:], row.first_link) for row in FRONT_ENDS
    ]
    assert all(f"`{row.extra}`" in page for row in FRONT_ENDS)


def test_every_command_has_its_page_and_every_option_its_row(pages: dict[str, str]) -> None:
    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^[│ ] ([a-z][a-z-]+) ", shown.partition("Commands")[2], re.MULTILINE)
    assert len(commands) >= 14
    for name in commands:
        assert pages[f"command {name}"].startswith(f"# ethosu-sdk {name}\n"), name
    assert "\n## ethosu-sdk sweep run\n" in pages["command sweep"]
    for name, option in (
        ("run", "--simulator` `auto\\|qemu\\|fvp\\|host`"),
        ("compile", "--evaluate` `F.npz`"),
        ("run", "--events` `NAME,…`"),
    ):
        assert f"`{option}" in pages[f"command {name}"]


def test_every_public_name_and_every_record_is_on_its_page(pages: dict[str, str]) -> None:
    for name in ethosu_sdk.__all__:
        assert name in pages["python"]
    for path in (ROOT / "schemas").glob("*.schema.json"):
        name, version = path.name.removesuffix(".schema.json").rsplit(".v", 1)
        assert f"{name}/{version}" in pages["records"]
    for kind in kinds.IN_FOLDERS:
        assert f"In a folder of results it is `{kind.file}`." in pages["records"]
