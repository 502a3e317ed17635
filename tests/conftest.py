"""What all tests share: the zoo compiled once for the whole session, and the oracles.

With pytest-xdist every worker is a session of its own; a folder beside theirs, with a lock, is common to all.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from ethosu_sdk.aot import CompileOutput, CompileRequest, compile_model
from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.files import locks, writing
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.simulators import host
from ethosu_sdk.targets import parse_target
from tests import own_qemu as corstone_qemu, warm
from tests.oracles import chain
from tests.oracles.tosa import TosaModel, tosa_model
from tests.places import ROOT

DEFAULT_TARGET = "ethos-u55-128"

ZooPte = Callable[..., CompileOutput]
ExpectedOutputs = Callable[[CompileOutput, Sequence[NDArray[Any]]], list[NDArray[Any]]]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of this test session, common to all of its pytest-xdist workers."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        base = base.parent
    return writing.make_directory(base / "shared")


@pytest.fixture(scope="session", autouse=True)
def own_surroundings(shared_folder: Path) -> Iterator[None]:
    """Keep the SDK's cache inside of the test session: nothing is found that an earlier one left.

    QEMU's plugin is built there, as scripts/setup does. The width and the colours of the terminal that the tests are
    started from do not reach them either.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
            patch.delenv(name, raising=False)
        patch.setenv("ETHOSU_SDK_CACHE", str(shared_folder / "cache"))
        subprocess.run([ROOT / "scripts" / "build-qemu-plugin"], check=True, capture_output=True, timeout=120)
        yield


@pytest.fixture(scope="session")
def zoo_pte(shared_folder: Path) -> ZooPte:
    """``zoo_pte(name, target="ethos-u55-128", io="float")``: the compiled zoo model, once per session."""

    def compiled(name: str, target: str = DEFAULT_TARGET, io: str = "float") -> CompileOutput:
        folder = writing.make_directory(shared_folder / "zoo" / f"{name}-{target}-{io}")
        facts = folder / "facts.json"
        with locks.locked(folder):
            if not facts.is_file():
                request = CompileRequest(
                    f"zoo:{name}", parse_target(target), folder, options=ProgramOptions(io=io)
                )
                with warm.compilers():
                    facts.write_text(crossing.to_text(compile_model(request)), encoding="utf-8")
        return crossing.from_json(CompileOutput, json.loads(facts.read_text(encoding="utf-8")))

    return compiled


@pytest.fixture(scope="session")
def own_qemu() -> Path:
    """The QEMU with Corstone-310 and -320."""
    return corstone_qemu.built()


@pytest.fixture(scope="session")
def host_runner(shared_folder: Path) -> Path:
    """The program that runs ExecuTorch's C++ runtime, built once per session."""
    return host.build_runner(shared_folder / "host-runner")


@pytest.fixture(scope="session")
def tosa() -> Iterator[TosaModel]:
    """A running TOSA reference model."""
    with tosa_model() as model:
        yield model


@pytest.fixture(scope="session")
def expected_outputs(host_runner: Path, tosa: TosaModel) -> ExpectedOutputs:
    """``expected_outputs(compiled, inputs)``: what the program must give, by the independent chain."""
    return lambda compiled, inputs: chain.expected_outputs(host_runner, compiled, inputs, tosa)
