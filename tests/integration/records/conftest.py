"""A folder of results, made once for all tests of what lies in it."""

import shutil
from pathlib import Path

import pytest

from tests.integration.conftest import FinishedRun
from tests.places import GOLDEN_PTE


@pytest.fixture(scope="session")
def finished(finished_run: FinishedRun) -> Path:
    """The folder of a profile: of its run and build, too."""
    return finished_run(GOLDEN_PTE / "add_u55.pte", command="profile")


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))
