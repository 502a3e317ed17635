"""Driving CMake and Ninja. All tools are found first, so that a missing one is named before anything runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import proc, records, tools
from ethosu_sdk.errors import BuildError, InputError, ToolError
from ethosu_sdk.files import json_text, locks, writing
from ethosu_sdk.firmware_build import build_tree

_CONFIGURE_TIMEOUT_S = 120.0
_BUILD_TIMEOUT_S = 600.0
_PROGRAMS = ("arm-none-eabi-g++", "cmake", "ninja", "flatc")
INCLUDE_ROOTS = ("/usr/include", "/usr/local/include")  # where firmware/runtime looks, too
_CONFIGURED_FOR = "configured-for.json"
EXECUTABLE = "executor_runner"  # firmware/cmake
OPERATORS = "operators.txt"  # firmware/kernels/CMakeLists.txt
LOG_NAME = "build.log"


@dataclass(frozen=True)
class Toolchain:
    """The programs of a build."""

    programs: tuple[tools.ToolStatus, ...]

    def versions(self) -> dict[str, str]:
        """Version of each program by name."""
        return {row.tool.name: row.version for row in self.programs}

    def path(self, name: str) -> str:
        """Absolute path of the program called `name`."""
        return next(str(row.path) for row in self.programs if row.tool.name == name)


def find_toolchain() -> Toolchain:
    """Everything a build needs. ToolError, with the package to install, for the first thing that lacks."""
    if not any((Path(root) / "flatbuffers" / "flatbuffers.h").is_file() for root in INCLUDE_ROOTS):
        raise ToolError(
            "build needs the FlatBuffers headers, which are missing", "apt-get install libflatbuffers-dev"
        )
    return Toolchain(tuple(tools.require(name) for name in _PROGRAMS))


@dataclass(frozen=True)
class Configuration:
    """What a CMake build tree is configured for: another configuration needs another tree, or a new one."""

    sources: Mapping[str, bytes]  # the firmware tree: file name relative to it → content
    preset: str
    toolchain: Toolchain

    def identity(self) -> records.Record:
        """Everything that makes two build trees different. Sources are not part of it: Ninja notices their
        changes."""
        return {
            "preset": self.preset,
            "programs": {row.tool.name: str(row.path) for row in self.toolchain.programs},
            "versions": self.toolchain.versions(),
        }


def publish(
    configuration: Configuration,
    files: Mapping[str, bytes],
    folder: Path,
    shared: Path | None,
    products: Sequence[Path],
    executable: str = EXECUTABLE,
) -> None:
    """Build in the tree `shared`, or else in `folder`, which the caller has locked, and copy what came of it.

    `products` is where the ELF and the linker's map go; for the rest see :func:`build`.
    """
    log = folder / LOG_NAME
    log.unlink(missing_ok=True)
    with locks.locked(shared) if shared else contextlib.nullcontext():
        # Hidden where it lies among results: no command lists what is in it.
        tree = shared / "build" if shared else folder / ".build"
        _discard_foreign(tree, configuration)
        build_tree.open_tree(tree)
        try:
            fresh = build(configuration, files, tree, log, executable)
        except BuildError:  # what is compiled so far is good
            with contextlib.suppress(BuildError):  # the disk may be what is full
                build_tree.close_tree(tree)
            raise
        build_tree.close_tree(tree)
        for made, final in zip(fresh, products, strict=True):
            writing.write_bytes(final, made.read_bytes())


def build(
    configuration: Configuration,
    files: Mapping[str, bytes],
    work: Path,
    log: Path,
    executable: str = EXECUTABLE,
) -> tuple[Path, Path]:
    """Write sources and generated `files`, compile and link in `work`; returns the ELF and the linker's map.

    Ninja compares times, and sources that were replaced may be older than their objects: it sees a copy, in
    which what changed is new. `work` is made anew when it was for another configuration. BuildError, with the
    last lines of the output, when a step fails; `log` has all of it.
    """
    source, objects = work / "source", work / "objects"
    generated = objects / "generated"  # below the build folder: no path of this machine enters the map
    toolchain = configuration.toolchain
    _check_place(work)
    _discard_foreign(work, configuration)
    mirror(source, configuration.sources)
    mirror(generated, {**files, OPERATORS: _all_lines(files[OPERATORS], generated / OPERATORS)})
    if not (work / _CONFIGURED_FOR).is_file():
        arguments = ["-S", str(source), "-B", str(objects), "--preset", configuration.preset]
        variables = {
            "ETHOSU_GENERATED_DIR": generated,
            "CMAKE_MAKE_PROGRAM": toolchain.path("ninja"),
            "ETHOSU_FLATC": toolchain.path("flatc"),
        }
        argv = [
            toolchain.path("cmake"),
            *arguments,
            *(f"-D{name}={value}" for name, value in variables.items()),
        ]
        proc.run(argv, timeout_s=_CONFIGURE_TIMEOUT_S, log=log)
        json_text.write_json(work / _CONFIGURED_FOR, _identity(work, configuration))
    jobs = str(len(os.sched_getaffinity(0)))
    proc.run(
        [
            toolchain.path("cmake"),
            "--build",
            str(objects),
            "-j",
            jobs,
            "--target",
            executable,
        ],
        timeout_s=_BUILD_TIMEOUT_S,
        log=log,
    )
    return objects / f"{executable}.elf", objects / f"{executable}.map"


def _all_lines(text: bytes, path: Path) -> bytes:
    """The lines of `text` and of the file at `path`, if it is there: what a tree once compiled, it keeps."""
    kept = path.read_bytes() if path.is_file() else b""
    return b"".join(sorted({*text.splitlines(keepends=True), *kept.splitlines(keepends=True)}))


def _check_place(work: Path) -> None:
    """BuildError for a path that the tools would take apart, or build in another place."""
    if found := build_tree.unfit(work):
        raise BuildError(
            f"CMake cannot build in {work}: its path contains {found}",
            "choose a folder without these characters for the cache (ETHOSU_SDK_CACHE), or for -o",
        )


def mirror(folder: Path, files: Mapping[str, bytes]) -> None:
    """Give `folder` exactly these files; one that is unchanged keeps its time stamp, for Ninja's sake."""
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            writing.make_directory(path.parent)
            writing.write_bytes(path, content)


def _identity(work: Path, configuration: Configuration) -> records.Record:
    return {**configuration.identity(), "place": str(work.absolute())}  # CMake's trees hold absolute paths


def _discard_foreign(work: Path, configuration: Configuration) -> None:
    """Remove a tree that was configured otherwise, or in another place."""
    if _configured_for(work) != _identity(work, configuration):
        build_tree.discard(work)


def _configured_for(work: Path) -> records.Record | None:
    try:
        return json_text.read_json(work / _CONFIGURED_FOR)
    except InputError:  # no note, or a damaged one
        return None
