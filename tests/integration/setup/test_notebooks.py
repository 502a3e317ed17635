"""The notebooks of the documentation run, and show what they showed when they were stored."""

from pathlib import Path

import pytest

from tests.integration.setup.notebooks import NOTEBOOKS, executed, shown


@pytest.mark.torch
@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_is_stored_with(path: Path, tmp_path: Path) -> None:
    import nbformat

    stored = shown(nbformat.read(path, as_version=4))
    assert any(stored)
    assert shown(executed(path, tmp_path)) == stored


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 2
