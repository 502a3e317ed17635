"""One sweep of two models by three families, and one of one model: what other tests compare with."""

from pathlib import Path

import pytest

from ethosu_sdk.files import locks, writing
from tests.integration.sweep.sweeps import NET, SCALE, SMALL, sweep, write

MATRIX = """
name = "matrix"
models = ["zoo:add", "*net.py"]
targets = ["ethos-u55-32", "ethos-u65-512", "ethos-u85-128", "ethos-u85-1024"]
memory_modes = ["Sram_Only", "Shared_Sram", "Dedicated_Sram"]
simulators = ["host"]

[[goals]]
figure = "time_ms"
want = "min"
"""


def _done(folder: Path, text: str, *options: str) -> Path:
    with locks.locked(writing.make_directory(folder)):
        file = write(folder, text)
        if not (folder / "out" / "sweep.json").is_file():
            write(folder, NET, "net.py")
            write(folder, SCALE, "scale.py")
            done = sweep(file, folder / "out", *options)
            assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="session")
def matrix(shared_folder: Path) -> Path:
    """``sweep.toml`` and its results in ``out``."""
    return _done(shared_folder / "sweep" / "matrix", MATRIX)


@pytest.fixture(scope="session")
def small(shared_folder: Path) -> Path:
    """The same for the small sweep."""
    return _done(shared_folder / "sweep" / "small", SMALL, "-j", "1")
