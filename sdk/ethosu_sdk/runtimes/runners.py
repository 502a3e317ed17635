"""Which prebuilt runners there are (runners.toml), and the installed file of each, checked by its digest."""

from __future__ import annotations

import functools
import importlib.metadata
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ethosu_sdk import tools
from ethosu_sdk.errors import ToolError, UsageError
from ethosu_sdk.files import hashing


@dataclass(frozen=True)
class Window:
    """A part of the board's memory that the runner and its user share."""

    address: int
    size_bytes: int


@dataclass(frozen=True)
class PrebuiltRunner:
    """One runner: the board and NPUs it is for, the simulators that have this board, and its memory."""

    board: str
    npus: tuple[str, ...]
    default_macs: int
    simulators: tuple[str, ...]
    folder: str
    sha256: str
    program: Window
    inputs: Window
    outputs: Window
    method_pool_bytes: int
    temporary_pool_bytes: int


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "runners.toml").read_text(encoding="utf-8"))


@functools.cache
def runners() -> tuple[PrebuiltRunner, ...]:
    """All runners, that for programs without an NPU first."""
    return msgspec.convert(_table()["runners"], tuple[PrebuiltRunner, ...])


def package_name() -> str:
    """The Python package that carries the runners."""
    return str(_table()["package"]["name"])


def licence() -> str:
    """The licence of the runners, as an SPDX expression."""
    return str(_table()["package"]["licence"])


def runner_for(npu: str | None) -> PrebuiltRunner:
    """The runner for programs that use `npu`, or none. UsageError when Arm built none."""
    for row in runners():
        if npu is None or npu in row.npus:
            return row
    known = ", ".join(name for row in runners() for name in row.npus)
    raise UsageError(
        f"Arm publishes no ExecuTorch runner for {npu}: its package has runners for {known}",
        "leave --runtime out: the SDK's own firmware can run the program",
    )


def executable(runner: PrebuiltRunner) -> Path:
    """The installed ELF of `runner`. ToolError, with the fix, when the package lacks or holds another file."""
    package: dict[str, str] = _table()["package"]
    found = tools.require(package["name"])
    distribution = importlib.metadata.distribution(package["name"])
    path = Path(str(distribution.locate_file(package["folder"]))) / runner.folder / package["executable"]
    if not path.is_file():
        raise ToolError(f"the installed {package['name']} has no runner for {runner.board}", found.tool.fix)
    digest = hashing.sha256_file(path)
    if digest != runner.sha256:
        raise ToolError(
            f"{path} is not the runner that {package['name']} {found.version} was published with: its SHA-256 is "
            f"{digest}, not {runner.sha256}",
            f"install the package again: {found.tool.fix}",
        )
    return path
