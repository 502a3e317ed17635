"""What all tests share: the zoo compiled once, what they keep between runs, and the oracles.

With pytest-xdist every worker is a session of its own; a folder beside theirs, with a lock, is common to all.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.simulate import host_runtime
from tests import kept, own_qemu as corstone_qemu, warm
from tests.oracles import chain
from tests.oracles.tosa import TosaModel, tosa_model
from tests.places import ROOT

DEFAULT_TARGET = "ethos-u55-128"

ZooPte = Callable[..., CompileOutput]
TWO_DELEGATES = "ds_cnn"  # a zoo model, compiled as it is written
KeptFolder = Callable[..., Path]
ExpectedOutputs = Callable[[CompileOutput, Sequence[NDArray[Any]]], list[NDArray[Any]]]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of this test session, common to all of its pytest-xdist workers."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        base = base.parent
    return filesystem.make_directory(base / "shared")


@pytest.fixture(scope="session")
def test_cache(shared_folder: Path) -> Path:
    """The folder that is kept between runs, and common to the workers: see :mod:`tests.kept`."""
    with filesystem.locked_folder(shared_folder):
        if not (shared_folder / "cache-is-tidy").exists():
            kept.drop_unused()
            (shared_folder / "cache-is-tidy").touch()
    return kept.root()


@pytest.fixture(scope="session", autouse=True)
def own_surroundings(test_cache: Path) -> Iterator[None]:
    """Keep the SDK's cache in the tests' own: nothing is found that its user left, nor QEMU's plugin.

    The width and the colours of the terminal that the tests are started from do not reach them either.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
            patch.delenv(name, raising=False)
        patch.setenv("ETHOSU_SDK_CACHE", str(test_cache / "sdk"))
        yield


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test that starts QEMU here, or compares it with an image's, finds its plugin before other fixtures run."""
    starts_qemu = any(item.get_closest_marker(name) for name in ("qemu", "container"))
    if starts_qemu and isinstance(item, pytest.Function):
        item.fixturenames.insert(0, "qemu_plugin")


@pytest.fixture(scope="session")
def qemu_plugin(test_cache: Path, own_surroundings: None) -> Iterator[Path]:
    """QEMU's plugin that counts blocks."""
    command = [
        "env",
        f"ETHOSU_SDK_CACHE={test_cache / 'plugin'}",
        str(ROOT / "scripts" / "build-qemu-plugin"),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    path = Path(done.stdout.strip())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHOSU_SDK_QEMU_PLUGIN", str(path))
        tools.probe.cache_clear()
        yield path


@pytest.fixture(scope="session")
def kept_folder(
    shared_folder: Path, test_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> KeptFolder:
    """``kept_folder(name, make, *parts, own=False)``: a folder of this session as ``make(folder)`` left it.

    It did so in this run, or in an earlier one from the same sources of the SDK and its firmware, the same module of
    `make`, and the same `parts`, which are texts and files. With `own` no other worker has it.
    """

    def folder(name: str, make: Callable[[Path], object], *parts: str | Path, own: bool = False) -> Path:
        return kept.folder((tmp_path_factory.mktemp(name) if own else shared_folder) / name, make, *parts)

    return folder


@pytest.fixture(scope="session")
def zoo_pte(shared_folder: Path, test_cache: Path) -> ZooPte:
    """``zoo_pte(name, target="ethos-u55-128", io="float")``: the compiled zoo model, kept between runs.

    ``ds_cnn`` is compiled as it is written: two delegates with a pooling on the CPU between them.
    """

    def compiled(name: str, target: str = DEFAULT_TARGET, io: str = "float") -> CompileOutput:
        def make(folder: Path) -> None:
            options = ProgramOptions(io=io, as_written=name == TWO_DELEGATES)
            request = CompileRequest(f"zoo:{name}", parse_target(target), folder, options=options)
            with warm.compilers():
                facts = compile_facts.to_json(compile_model(request))
            (folder / "facts.json").write_text(facts, encoding="utf-8")

        place = filesystem.make_directory(shared_folder / "zoo") / f"{name}-{target}-{io}"
        folder = kept.folder(place, make, basis=kept.compiler())
        facts = (folder / "facts.json").read_text(encoding="utf-8")
        return compile_facts.from_json(CompileOutput, json.loads(facts))

    return compiled


@pytest.fixture(scope="session")
def own_qemu() -> Path:
    """The QEMU with Corstone-310 and -320."""
    return corstone_qemu.built()


@pytest.fixture(scope="session")
def host_runner(test_cache: Path) -> Path:
    """The program that runs ExecuTorch's C++ runtime."""
    return host_runtime.build_runner(filesystem.make_directory(test_cache / "sdk" / host_runtime.CACHE_PART))


@pytest.fixture(scope="session")
def tosa() -> Iterator[TosaModel]:
    """A running TOSA reference model."""
    with tosa_model() as model:
        yield model


@pytest.fixture(scope="session")
def expected_outputs(host_runner: Path, tosa: TosaModel) -> ExpectedOutputs:
    """``expected_outputs(compiled, inputs)``: what the program must give, by the independent chain."""
    return lambda compiled, inputs: chain.expected_outputs(host_runner, compiled, inputs, tosa)
