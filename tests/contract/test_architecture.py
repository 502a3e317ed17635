"""What pages say of the rooms and modules of the SDK is in the tree."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.contract.sources import PACKAGE, text
from tests.places import ROOT
from tests.way import ARCHITECTURE

_PATH = re.compile(r"`([a-z_]+(?:/[a-z0-9_]+)+\.(?:py|toml|cpp|hpp))`")


def missing(page: Path) -> list[str]:
    """The files that a page names with their folders and that are nowhere."""
    roots = (PACKAGE, PACKAGE / "compile", ROOT, ROOT / "firmware")
    return [name for name in _PATH.findall(text(page)) if not any((root / name).is_file() for root in roots)]


@pytest.mark.parametrize("page", [ARCHITECTURE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_named_files_exist(page: Path) -> None:
    assert _PATH.search(text(page))
    assert missing(page) == []


def test_a_name_of_no_file_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`base/errors.py`, `base/no_such.py`, `FILE.py`", encoding="utf-8")
    assert missing(page) == ["base/no_such.py"]


def test_the_tables_have_every_room_in_the_order_of_the_contract() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    tables = text(ARCHITECTURE).partition("## One run")[0]
    named = re.findall(r"^\| `(\w+)`", tables, re.MULTILINE)
    assert sorted(named) == sorted(folders)
    contracts = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(row["layers"] for row in contracts if row["type"] == "layers")
    levels = {name: -at for at, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}
    core = named[: named.index("cli") + 1]
    assert core == sorted(core, key=lambda room: levels[room])
