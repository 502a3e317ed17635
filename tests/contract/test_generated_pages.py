"""Pages that are made from the program hold all of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ethosu_sdk
from ethosu_sdk.records import kinds
from tests.places import ROOT

COMMAND = Path(sys.executable).with_name("ethosu-sdk")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import docs_pages

    return {
        "commands": docs_pages.commands(),
        "python": docs_pages.python_page(),
        "records": docs_pages.records_page(),
    }


def test_every_command_has_its_section_and_every_option_its_row(pages: dict[str, str]) -> None:
    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^[│ ] ([a-z][a-z-]+) ", shown.partition("Commands")[2], re.MULTILINE)
    assert len(commands) >= 14
    for name in commands:
        assert f"## ethosu-sdk {name}" in pages["commands"], name
    for option in ("--simulator` `auto\\|qemu\\|fvp\\|host`", "--evaluate` `F.npz`", "--events` `NAME,…`"):
        assert f"`{option}" in pages["commands"]


def test_every_public_name_and_every_record_is_on_its_page(pages: dict[str, str]) -> None:
    for name in ethosu_sdk.__all__:
        assert name in pages["python"]
    for path in (ROOT / "schemas").glob("*.schema.json"):
        name, version = path.name.removesuffix(".schema.json").rsplit(".v", 1)
        assert f"{name}/{version}" in pages["records"]
    for kind in kinds.IN_FOLDERS:
        assert f"In a folder of results it is `{kind.file}`." in pages["records"]
