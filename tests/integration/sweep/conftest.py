"""One sweep of two models by three families, and one of one model: what other tests compare with."""

from pathlib import Path

import pytest

from tests.conftest import KeptFolder
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


def _done(kept_folder: KeptFolder, name: str, text: str, *options: str) -> Path:
    def make(folder: Path) -> None:
        write(folder, NET, "net.py")
        write(folder, SCALE, "scale.py")
        done = sweep(write(folder, text), folder / "out", *options)
        assert done.code == 0, done.err

    return kept_folder(name, make, NET, SCALE, text, *options)


@pytest.fixture(scope="session")
def matrix(kept_folder: KeptFolder) -> Path:
    """``sweep.toml`` and its results in ``out``."""
    return _done(kept_folder, "matrix", MATRIX)


@pytest.fixture(scope="session")
def small(kept_folder: KeptFolder) -> Path:
    """The same for the small sweep."""
    return _done(kept_folder, "small", SMALL, "-j", "1")
