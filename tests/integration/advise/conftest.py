"""The network, advised on once for all of these tests."""

from pathlib import Path

import pytest

from ethosu_sdk.base import filesystem
from tests.integration.advise.programs import AS_WRITTEN, Advised, advised, model


@pytest.fixture(scope="session")
def place(shared_folder: Path) -> Path:
    """Where the networks of these tests lie, and their runs."""
    folder = filesystem.make_directory(shared_folder / "advise")
    with filesystem.locked_folder(folder):
        if not (folder / "net.py").is_file():
            (folder / "net.py").write_text(model(), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def plain(place: Path) -> Advised:
    """The network as it is, for Ethos-U55."""
    return advised("net.py", place, "plain", AS_WRITTEN)
