"""A run with its profile, its report, and a browser that reaches no network."""

from pathlib import Path

import pytest

from ethosu_sdk.files import locks, writing
from tests.conftest import ZooPte
from tests.integration.cli import sdk
from tests.integration.report.pages import beside_its_record


@pytest.fixture(scope="session")
def run_folder(zoo_pte: ZooPte, shared_folder: Path) -> Path:
    """The folder of a profiled run of digits_cnn, the program and its compile record in it."""
    folder = writing.make_directory(shared_folder / "report" / "digits")
    with locks.locked(folder.parent):
        if not (folder / "profile.json").is_file():
            program = beside_its_record("digits_cnn", zoo_pte, folder)
            done = sdk("profile", program, "-o", folder, "-q", cwd=folder)
            assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def report(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of that run."""
    path = tmp_path_factory.mktemp("report") / "digits.html"
    done = sdk("report", run_folder, "-o", path, cwd=path.parent)
    assert done.code == 0, done.err
    return path
