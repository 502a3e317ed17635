"""Two compilations of one model, run on the host simulator: for the default memory mode, and with all in SRAM.
Versions of Vela: the installed one, and copies of it with a planted change."""

from pathlib import Path

import pytest

from tests.conftest import KeptFolder
from tests.integration.cli import sdk_ok
from tests.integration.compare import planted_vela
from tests.integration.compare.runs import MODEL, run_on_host


@pytest.fixture(scope="session")
def made(kept_folder: KeptFolder) -> Path:
    """``shared`` and ``sram``: folders of runs without a profile."""

    def make(folder: Path) -> None:
        for name, mode in (("shared", "Shared_Sram"), ("sram", "Sram_Only")):
            words = ("--memory-mode", mode, "--no-check", "-q", "-o", folder / name)
            sdk_ok("compile", f"zoo:{MODEL}", *words, cwd=folder)
            run_on_host(folder / name)

    return kept_folder("compare", make, MODEL)


OWN = planted_vela.OWN
SLOWER, WRONG, BROKEN = "9.9.1", "9.9.2", "9.9.3"
# What is added to the end of ethosu/vela/vela.py.
CHANGES = {
    SLOWER: """
_main = main
def main(args=None):
    return _main([*args, "--max-block-dependency=0", "--optimise=Size", "--disable-buffering"])
""",
    # The shift of every channel of the first layer: its sums are four times as large.
    WRONG: """
_main = main
def main(args=None):
    import numpy, pathlib
    done = _main(args)
    for path in pathlib.Path(".").glob("output/*_vela.npz"):
        with numpy.load(path) as found:
            arrays = {name: found[name] for name in found.files if "quantization" not in name}
        weights = bytearray(arrays["weight_data"].tobytes())
        for channel in range(16):
            weights[10 * channel + 9] -= 2
        arrays["weight_data"] = numpy.frombuffer(weights, numpy.uint8)
        numpy.savez(path, **arrays)
    return done
""",
    BROKEN: """
def main(args=None):
    raise SystemExit("Error: this network is too good for me")
""",
}


@pytest.fixture(scope="module")
def versions() -> Path:
    """The cache, with the changed copies in it."""
    return planted_vela.plant(CHANGES)
