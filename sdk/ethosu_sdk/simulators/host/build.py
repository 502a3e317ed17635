"""Building the runner against the C++ runtime that the executorch wheel ships, without CMake.

The wheel's CMake package (1.5.1) defines targets for CMake 3.28 and later only; what it asks of a compiler
are these definitions, one include folder, and its libraries. Those with kernels only register themselves when
they are loaded, so the linker must be told to keep them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import cache, proc, resources
from ethosu_sdk.errors import ToolError
from ethosu_sdk.files import locks, writing
from ethosu_sdk.pte import executorch_package

_HERE = Path(__file__).parent
_SOURCES = (_HERE / "runner.cpp", _HERE / "firmware_kernels.cpp")
_HEADERS = (_HERE / "named_data.hpp", _HERE / "planned_memory.hpp")
_DEFINITIONS = ("-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED", "-DET_USE_THREADPOOL")
_KERNEL_LIBRARIES = ("executorch_threadpool", "executorch_kernels_optimized", "executorch_kernels_quantized")
_TIMEOUT_S = 1800.0  # half a minute, but far more where another processor is emulated or the machine is busy
CACHE_PART = "host-runner"

# ExecuTorch's wheel has no kernels for the operators of its Cortex-M backend: those are the firmware's.
_FROM_FIRMWARE = "cortex_m::"
_FUNCTION = re.compile(r"[a-z_0-9]+")
_USES = re.compile(r'^#include "kernels/operators/(\w+)\.hpp"', re.MULTILINE)


@dataclass(frozen=True)
class _Firmware:
    """The part of the firmware that has these kernels: its folder, sources, and the generated files by name."""

    folder: Path
    sources: tuple[Path, ...]
    generated: dict[str, str]

    def content(self) -> Iterator[bytes]:
        """All that shapes what is compiled."""
        for folder in ("kernels", "base"):
            for path in sorted((self.folder / folder).rglob("*.[ch]pp")):
                yield path.read_bytes()
        yield from (text.encode() for text in self.generated.values())


def _firmware() -> _Firmware:
    folder = resources.directory("firmware")
    kernels = folder / "kernels"
    tables = tomllib.loads((kernels / "kernels.toml").read_text(encoding="utf-8"))
    functions, rows, families = [], [], []
    for family, table in tables.items():
        functions += [_FUNCTION.match(call)[0] for call in table.values()]  # type: ignore[index]
        own = {name: call for name, call in table.items() if name.startswith(_FROM_FIRMWARE)}
        rows += [
            f'{{"{name}", ethosu_sdk::kernels::{call.partition("(")[0]}}},' for name, call in own.items()
        ]
        if own:
            families.append(family)
    declared = "".join(
        f"Status {name}(KernelContext& context, Span<Value* const> arguments);\n"
        for name in dict.fromkeys(functions)
    )
    header = (kernels / "kernels.hpp.in").read_text(encoding="utf-8")
    shared = [
        path for place in ("support", "support/scalar", "../base") for path in (kernels / place).glob("*.cpp")
    ]
    return _Firmware(
        folder,
        (*_sources(kernels / "operators", families), *sorted(shared)),
        {
            "kernels/kernels.hpp": header.replace("@ETHOSU_KERNEL_DECLARATIONS@", declared),
            "firmware_kernels.inc": "\n".join(rows),
        },
    )


def _sources(folder: Path, families: list[str]) -> Iterator[Path]:
    """The sources of families of operators, and of those that they use."""
    wanted = list(families)
    for family in wanted:
        source = folder / f"{family}.cpp"
        used = _USES.findall(source.read_text(encoding="utf-8"))
        wanted += [name for name in used if name not in wanted]
        yield source


def runner_argv(compiler: str, root: Path, output: Path, generated: Path) -> list[str]:
    """The compiler's command line for the runner, against the executorch package at `root`, with the files that were
    generated into the folder `generated`."""
    libraries = root / "lib"
    kernels = [
        word
        for name in _KERNEL_LIBRARIES
        for word in ("-Wl,--push-state,--no-as-needed", str(libraries / f"lib{name}.so"), "-Wl,--pop-state")
    ]
    firmware = _firmware()
    return [
        compiler,
        "-std=c++17",
        "-O2",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        *_DEFINITIONS,
        "-I",
        str(generated),
        "-I",
        str(firmware.folder),
        "-isystem",
        str(root / "include"),
        # c10 and other headers are vendored below the runtime's own.
        "-isystem",
        str(root / "include" / "executorch" / "runtime" / "core" / "portable_type" / "c10"),
        *map(str, (*_SOURCES, *firmware.sources)),
        "-o",
        str(output),
        str(libraries / "libexecutorch.so"),
        *kernels,
        f"-Wl,-rpath,{libraries}",
    ]


def build_runner(folder: Path) -> Path:
    """The runner program, built in `folder` (half a minute) unless one from the same sources, options and
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
    with locks.temporary_directory(".generated-", program.parent) as generated:
        for name, text in _firmware().generated.items():
            path = generated / name
            writing.write_bytes(writing.make_directory(path.parent) / path.name, text.encode())
        writing.write_atomic(
            program, lambda temporary: _build(runner_argv(compiler, root, temporary, generated))
        )
    writing.make_executable(program)


def _program_name(root: Path) -> str:
    key = hashlib.sha256()
    for content in (*(path.read_bytes() for path in (*_SOURCES, *_HEADERS)), *_firmware().content()):
        key.update(content)
    version = importlib.metadata.version("executorch")
    key.update("\n".join([version, *runner_argv("g++", root, Path("runner"), Path("generated"))]).encode())
    return f"host-runner-{key.hexdigest()[:16]}"


def _build(argv: list[str]) -> None:
    proc.run(argv, timeout_s=_TIMEOUT_S, error=ToolError)
