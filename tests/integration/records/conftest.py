"""A folder of results, made once for all tests of what lies in it."""

import shutil
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a profile: of its run and build, too."""
    folder = tmp_path_factory.mktemp("bundle")
    done = sdk("profile", GOLDEN_PTE / "add_u55.pte", "-o", folder / "run", "-q", cwd=folder)
    assert done.code == 0, done.err
    return folder / "run"


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))
