"""The report of a run."""

from pathlib import Path

import pytest

from tests.integration.cli import sdk_ok


@pytest.fixture(scope="session")
def report(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of that run."""
    path = tmp_path_factory.mktemp("report") / "digits.html"
    sdk_ok("report", run_folder, "-o", path, cwd=path.parent)
    return path
