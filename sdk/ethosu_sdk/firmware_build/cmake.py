"""Driving CMake and Ninja, in build trees of which every file's digest is noted."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import cache, filesystem, json_text, proc, tools
from ethosu_sdk.base.errors import BuildError, InputError, ToolError
from ethosu_sdk.base.json_text import Record

# Digests of every file in a build tree are noted, so that a tree that was changed between builds is noticed: Ninja
# trusts times, and would link an object that somebody replaced, or that an interrupted build left, as its own.

_NOTE = "objects.json"
_OBJECTS = "objects"  # below the tree; sources are compared with their contents each time
# When things were done, in what order, and under which temporary names: what they say is not part of an ELF.
_DIARIES = (".ninja_log", ".ninja_deps", "CMakeOutput.log", "CMakeError.log")
_SHOWN = 3
_TAKEN_APART = ';$"\\#%|<>,\n'  # each tried with CMake 3.25, Ninja 1.11 and GNU ld


def unfit_characters(tree: Path) -> str:
    """The characters in the path of `tree` that keep CMake, Ninja or the linker from building there; mostly none."""
    return " ".join(map(repr, sorted(set(_TAKEN_APART) & set(str(tree.absolute())))))


def open_tree(tree: Path) -> None:
    """Make sure that all in `tree` is what :func:`close_tree` left there; else discard it, and note an altered file.

    Until the tree is closed again it counts as interrupted.
    """
    noted = _read_note(tree / _NOTE)
    (tree / _NOTE).unlink(missing_ok=True)
    if noted is None:
        discard_tree(tree)
        return
    found = _digests(tree)
    altered = sorted(name for name in {*noted, *found} if noted.get(name) != found.get(name))
    if altered:
        more = ", …" if len(altered) > _SHOWN else ""
        cache.note(
            f"the build tree {tree} was changed since the last build ({', '.join(altered[:_SHOWN])}{more}): it is "
            "created again"
        )
        discard_tree(tree)


def close_tree(tree: Path) -> None:
    json_text.write_json(tree / _NOTE, _digests(tree))


def discard_tree(tree: Path) -> None:
    try:
        if tree.is_dir():
            shutil.rmtree(tree)
    except OSError as error:
        raise BuildError(f"cannot clear {tree}: {error.strerror}") from error


def _read_note(path: Path) -> Record | None:
    try:
        return json_text.read_json(path)
    except InputError:  # no note, or a damaged one
        return None


def _digests(tree: Path) -> dict[str, str]:
    return {
        path.relative_to(tree).as_posix(): _digest(path)
        for path in sorted((tree / _OBJECTS).rglob("*"))
        if path.name not in _DIARIES and (path.is_symlink() or not path.is_dir())
    }


def _digest(path: Path) -> str:
    try:
        return f"link to {path.readlink()}" if path.is_symlink() else filesystem.sha256_file(path)
    except (OSError, InputError):
        return "cannot be read"


_CONFIGURE_TIMEOUT_S = 120.0
_BUILD_TIMEOUT_S = 600.0
PROGRAMS = ("arm-none-eabi-g++", "cmake", "ninja", "flatc")
INCLUDE_ROOTS = ("/usr/include", "/usr/local/include")  # where firmware/runtime looks, too
_CONFIGURED_FOR = "configured-for.json"
_PRESET = "corstone-300"  # whose generator and compiler all boards have
EXECUTABLE = "executor_runner"  # firmware/cmake
OPERATORS = "operators.txt"  # firmware/kernels/CMakeLists.txt
LOG_NAME = "build.log"


@dataclass(frozen=True)
class Toolchain:
    programs: tuple[tools.ToolStatus, ...]

    def versions(self) -> dict[str, str]:
        return {row.tool.name: row.version for row in self.programs}

    def path(self, name: str) -> str:
        return next(str(row.path) for row in self.programs if row.tool.name == name)


def find_toolchain() -> Toolchain:
    """Everything a build needs, found before anything runs. ToolError, with the package to install, for the first
    thing that lacks."""
    if not any((Path(root) / "flatbuffers" / "flatbuffers.h").is_file() for root in INCLUDE_ROOTS):
        raise ToolError(
            "build needs the FlatBuffers headers, which are missing", "apt-get install libflatbuffers-dev"
        )
    return Toolchain(tuple(tools.require(name) for name in PROGRAMS))


@dataclass(frozen=True)
class TreeConfiguration:
    """What a CMake build tree is configured for: another configuration needs another tree, or a new one."""

    sources: Mapping[str, bytes]  # the firmware tree: file name relative to it → content
    board: str
    toolchain: Toolchain


def publish_products(
    configuration: TreeConfiguration,
    files: Mapping[str, bytes],
    folder: Path,
    shared: Path | None,
    products: Sequence[Path],
    executable: str,
) -> None:
    """Build in the tree `shared`, or else in `folder`, which the caller has locked, and copy what came of it.

    `products` is where the ELF and the linker's map go; for the rest see :func:`build_tree`.
    """
    log = folder / LOG_NAME
    log.unlink(missing_ok=True)
    with filesystem.locked_folder(shared) if shared else contextlib.nullcontext():
        # Hidden where it lies among results: no command lists what is in it.
        tree = shared / "build" if shared else folder / ".build"
        _discard_foreign(tree, configuration)
        open_tree(tree)
        try:
            fresh = build_tree(configuration, files, tree, log, executable)
        except BuildError:  # what is compiled so far is good
            with contextlib.suppress(BuildError):  # the disk may be what is full
                close_tree(tree)
            raise
        close_tree(tree)
        for made, final in zip(fresh, products, strict=True):
            filesystem.write_bytes(final, made.read_bytes())


def build_tree(
    configuration: TreeConfiguration,
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
    if found := unfit_characters(work):
        raise BuildError(
            f"CMake cannot build in {work}: its path contains {found}",
            "choose a folder without these characters for the cache (ETHOSU_SDK_CACHE), or for -o",
        )
    _discard_foreign(work, configuration)
    mirror_sources(source, configuration.sources)
    mirror_sources(generated, {**files, OPERATORS: _all_lines(files[OPERATORS], generated / OPERATORS)})
    if not (work / _CONFIGURED_FOR).is_file():
        argv = [
            *(toolchain.path("cmake"), "-S", str(source), "-B", str(objects)),
            *("--preset", _PRESET),
            f"-DETHOSU_BOARD={configuration.board}",
            f"-DETHOSU_GENERATED_DIR={generated}",
            f"-DCMAKE_MAKE_PROGRAM={toolchain.path('ninja')}",
            f"-DETHOSU_FLATC={toolchain.path('flatc')}",
        ]
        proc.run(argv, timeout_s=_CONFIGURE_TIMEOUT_S, log=log)
        json_text.write_json(work / _CONFIGURED_FOR, _identity(work, configuration))
    jobs = str(len(os.sched_getaffinity(0)))
    argv = [toolchain.path("cmake"), "--build", str(objects), "-j", jobs, "--target", executable]
    proc.run(argv, timeout_s=_BUILD_TIMEOUT_S, log=log)
    return objects / f"{executable}.elf", objects / f"{executable}.map"


def _all_lines(text: bytes, path: Path) -> bytes:
    """The lines of `text` and of the file at `path`, if it is there: what a tree once compiled, it keeps."""
    kept = path.read_bytes() if path.is_file() else b""
    return b"".join(sorted({*text.splitlines(keepends=True), *kept.splitlines(keepends=True)}))


def mirror_sources(folder: Path, files: Mapping[str, bytes]) -> None:
    """Give `folder` exactly these files; one that is unchanged keeps its time stamp, for Ninja's sake."""
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            filesystem.make_directory(path.parent)
            filesystem.write_bytes(path, content)


def _identity(work: Path, configuration: TreeConfiguration) -> Record:
    """Everything that makes two build trees different. Sources are not part of it: Ninja notices their changes."""
    return {
        "board": configuration.board,
        "programs": {row.tool.name: str(row.path) for row in configuration.toolchain.programs},
        "versions": configuration.toolchain.versions(),
        "place": str(work.absolute()),  # CMake's trees hold absolute paths
    }


def _discard_foreign(work: Path, configuration: TreeConfiguration) -> None:
    """Remove a tree that was configured otherwise, or in another place."""
    if _read_note(work / _CONFIGURED_FOR) != _identity(work, configuration):
        discard_tree(work)
