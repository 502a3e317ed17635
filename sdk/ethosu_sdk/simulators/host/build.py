"""Building the runner against the C++ runtime that the executorch wheel ships, without CMake.

The wheel's CMake package (1.5.1) defines targets for CMake 3.28 and later only; what it asks of a compiler
are these definitions, one include folder, and its libraries. Those with kernels only register themselves when
they are loaded, so the linker must be told to keep them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path

from ethosu_sdk import cache, proc
from ethosu_sdk.errors import ToolError
from ethosu_sdk.files import locks, writing
from ethosu_sdk.pte import executorch_package

_SOURCE = Path(__file__).with_name("runner.cpp")
_HEADER = Path(__file__).with_name("planned_memory.hpp")
_DEFINITIONS = ("-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED", "-DET_USE_THREADPOOL")
_KERNEL_LIBRARIES = ("executorch_threadpool", "executorch_kernels_optimized", "executorch_kernels_quantized")
_TIMEOUT_S = 300.0
CACHE_PART = "host-runner"


def runner_argv(compiler: str, root: Path, output: Path) -> list[str]:
    """The compiler's command line for the runner, against the executorch package at `root`."""
    libraries = root / "lib"
    kernels = [
        word
        for name in _KERNEL_LIBRARIES
        for word in ("-Wl,--push-state,--no-as-needed", str(libraries / f"lib{name}.so"), "-Wl,--pop-state")
    ]
    return [
        compiler,
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        *_DEFINITIONS,
        "-isystem",
        str(root / "include"),
        # c10 and other headers are vendored below the runtime's own.
        "-isystem",
        str(root / "include" / "executorch" / "runtime" / "core" / "portable_type" / "c10"),
        str(_SOURCE),
        "-o",
        str(output),
        str(libraries / "libexecutorch.so"),
        *kernels,
        f"-Wl,-rpath,{libraries}",
    ]


def build_runner(folder: Path) -> Path:
    """The runner program, built in `folder` (a few seconds) unless one from the same source, options and
    executorch is there already or came with the installation: that one needs no compiler. ToolError when the
    compiler or executorch is missing, or the build fails."""
    root = executorch_package.root()
    name = _program_name(root)
    shipped = cache.prebuilt(CACHE_PART)
    if shipped is not None and (shipped / name).is_file():
        return shipped / name
    with locks.locked(folder):
        return cache.kept(folder / name, lambda program: _make(program, root))


def _make(program: Path, root: Path) -> None:
    compiler = proc.find_tool("g++", hint="apt-get install g++")
    if not (root / "include").is_dir():
        raise ToolError("the installed executorch package has no C++ headers", executorch_package.INSTALL)
    writing.write_atomic(program, lambda temporary: _build(runner_argv(compiler, root, temporary)))
    writing.make_executable(program)


def _program_name(root: Path) -> str:
    key = hashlib.sha256(_SOURCE.read_bytes() + _HEADER.read_bytes())
    version = importlib.metadata.version("executorch")
    key.update("\n".join([version, *runner_argv("g++", root, Path("runner"))]).encode())
    return f"host-runner-{key.hexdigest()[:16]}"


def _build(argv: list[str]) -> None:
    proc.run(argv, timeout_s=_TIMEOUT_S, error=ToolError)
