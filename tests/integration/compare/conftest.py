"""Two compilations of one model, run on the host simulator: for the default memory mode, and with all in SRAM.
Versions of Vela: the installed one, and copies of it with a planted change."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from ethosu_sdk import cache, provenance
from ethosu_sdk.files import locks, writing
from tests.integration.cli import sdk
from tests.integration.compare.runs import MODEL, run_on_host


@pytest.fixture(scope="session")
def made(shared_folder: Path) -> Path:
    """``shared`` and ``sram``: folders of runs without a profile."""
    folder = writing.make_directory(shared_folder / "compare")
    with locks.locked(folder):
        for name, mode in (("shared", "Shared_Sram"), ("sram", "Sram_Only")):
            if not (folder / name / "run.json").is_file():
                words = ("--memory-mode", mode, "--no-check", "-q", "-o", folder / name)
                done = sdk("compile", f"zoo:{MODEL}", *words, cwd=folder)
                assert done.code == 0, done.err
                run_on_host(folder / name)
    return folder


OWN = provenance.package_version("ethos-u-vela") or ""
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
def versions(shared_folder: Path) -> Path:
    """The cache, with the changed copies in it."""
    spec = importlib.util.find_spec("ethosu")
    assert spec is not None
    assert spec.submodule_search_locations
    place = cache.directory("vela")
    with locks.locked(place):
        for version, change in CHANGES.items():
            if not (place / version).is_dir():
                shutil.copytree(next(iter(spec.submodule_search_locations)), place / version / "ethosu")
                with (place / version / "ethosu" / "vela" / "vela.py").open("a", encoding="utf-8") as file:
                    file.write(change)
    return place
