"""The site of the documentation, built once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import filesystem
from tests.places import ROOT


@pytest.fixture(scope="session")
def site(shared_folder: Path) -> Path:
    """Its folder."""
    folder = filesystem.make_directory(shared_folder / "docs") / "site"
    with filesystem.locked_folder(folder.parent):
        if not folder.is_dir():
            subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
                cwd=ROOT,
                env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
                check=True,
                timeout=240,
            )
    return folder
