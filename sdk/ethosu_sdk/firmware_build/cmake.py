"""Driving CMake and Ninja. All tools are found first, so that what lacks is named before anything runs."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import proc, records, resources, tools
from ethosu_sdk.errors import BuildError, ToolError

_CONFIGURE_TIMEOUT_S = 120.0
_BUILD_TIMEOUT_S = 600.0
_PROGRAMS = ("arm-none-eabi-g++", "cmake", "ninja", "flatc")
_SCHEMA_FILES = ("program.fbs", "scalar_type.fbs")
_CONFIGURED_FOR = "configured-for.json"


@dataclass(frozen=True)
class Toolchain:
    """The programs of a build and where the `.pte` schema lies."""

    programs: tuple[tools.Found, ...]
    schema_dir: Path

    def versions(self) -> dict[str, str]:
        """Version of each program by name, and of ExecuTorch, whose schema it is."""
        executorch = tools.probe("executorch").version
        return {row.tool.name: row.version for row in self.programs} | {"executorch": executorch}

    def path(self, name: str) -> str:
        """Absolute path of the program called `name`."""
        return next(str(row.path) for row in self.programs if row.tool.name == name)


def find_toolchain() -> Toolchain:
    """Everything a build needs. ToolError, with the package to install, for the first thing that lacks."""
    return Toolchain(tuple(tools.require(name) for name in _PROGRAMS), _schema_dir())


def _schema_dir() -> Path:
    """ExecuTorch's schema folder, found without importing executorch (that would import torch)."""
    tools.require("executorch")
    spec = importlib.util.find_spec("executorch")
    for root in (spec.submodule_search_locations if spec else None) or ():
        folder = Path(root) / "schema"
        if all((folder / name).is_file() for name in _SCHEMA_FILES):
            return folder
    raise ToolError(
        "the installed executorch package carries no .pte schema (schema/program.fbs)",
        tools.table()["executorch"].fix,
    )


def build(*, preset: str, generated: Path, work: Path, toolchain: Toolchain, log: Path) -> tuple[Path, Path]:
    """Compile and link in `work`; returns the ELF and the linker's map. BuildError when a step fails.

    `work` is made anew when it was configured for another source tree or other tools.
    """
    source = resources.directory("firmware")
    arguments = [
        toolchain.path("cmake"),
        "-S",
        str(source),
        "-B",
        str(work),
        "--preset",
        preset,
        f"-DETHOSU_GENERATED_DIR={generated}",
        f"-DETHOSU_PTE_SCHEMA_DIR={toolchain.schema_dir}",
        f"-DCMAKE_MAKE_PROGRAM={toolchain.path('ninja')}",
    ]
    identity = {"arguments": arguments, "tools": toolchain.versions()}
    _discard_foreign(work, identity)
    jobs = str(max(1, len(os.sched_getaffinity(0))))
    if not (work / _CONFIGURED_FOR).is_file():
        proc.run(arguments, timeout_s=_CONFIGURE_TIMEOUT_S, log=log)
        records.write_json(work / _CONFIGURED_FOR, identity)
    proc.run(
        [toolchain.path("cmake"), "--build", str(work), "-j", jobs, "--target", "executor_runner"],
        timeout_s=_BUILD_TIMEOUT_S,
        log=log,
    )
    return work / "executor_runner.elf", work / "executor_runner.map"


def _discard_foreign(work: Path, identity: records.Record) -> None:
    stamp = work / _CONFIGURED_FOR
    if work.is_dir() and not (stamp.is_file() and records.read_json(stamp) == identity):
        try:
            shutil.rmtree(work)
        except OSError as error:
            raise BuildError(f"cannot clear {work}: {error.strerror}") from error
