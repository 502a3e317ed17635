"""The firmware's runtime and kernels on this machine: builds and drives `pte_host_runner`."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from ethosu_sdk.base import filesystem, proc, tools
from ethosu_sdk.firmware_build import cmake, generated_files
from ethosu_sdk.program import pte
from tests import kept
from tests.places import ROOT

Array = NDArray[Any]

FIRMWARE = ROOT / "firmware"
MANIFEST = FIRMWARE / "kernels" / "kernels.toml"
CPP_TESTS = (
    "runtime_program_test",
    "runtime_refusal_test",
    "runtime_borders_test",
    "kernels_arguments_test",
    "kernels_counts_test",
    "kernels_layouts_test",
    "kernels_primitives_test",
)
# Of their own build type: with Release's -O2, sanitised sources take half as long again to compile.
SANITIZERS = "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
NO_TENSOR = ("none", "integer", "boolean", "real", "string")  # outputs of other kinds have no bytes


def configure_and_build(folder: Path, targets: Sequence[str], *options: str) -> None:
    """CMake over firmware/ into `folder`, then some targets of it."""
    shared = folder.parent / f"{folder.name}-shared"
    cmake.mirror_sources(shared, generated_files.shared_sources())
    own = (f"-DETHOSU_SHARED_SOURCES_DIR={shared}", f"-DETHOSU_FLATC={tools.require('flatc').path}")
    configure = ["cmake", "-S", str(FIRMWARE), "-B", str(folder), "-G", "Ninja", *own, *options]
    proc.run(configure, timeout_s=600)
    proc.run(["cmake", "--build", str(folder), "--target", *targets], timeout_s=600)


def kept_tree(name: str, targets: Sequence[str], *options: str) -> Path:
    """A build tree that is kept from run to run, with `targets` up to date: Ninja knows what has changed since."""
    compiler = proc.run(["c++", "--version"], timeout_s=60).output
    folder = kept.shared(name, [], str(ROOT), compiler, *options)
    with filesystem.locked_folder(folder):
        configure_and_build(folder, targets, *options)
    return folder


def host_tree(targets: Sequence[str]) -> Path:
    """The tree for this machine, with address and undefined-behaviour sanitizers."""
    options = ("-DETHOSU_BOARD=host", "-DCMAKE_BUILD_TYPE=Sanitized", f"-DCMAKE_CXX_FLAGS={SANITIZERS}")
    return kept_tree("host-tree", targets, *options)


@functools.cache
def built(name: str = "pte_host_runner") -> Path:
    """A program of firmware/tests/runtime: the runner, another runner or a test."""
    return host_tree([name]) / "tests" / "runtime" / name


@dataclass(frozen=True)
class Run:
    """What one run of the runner said: status name, reason, outputs and executed instructions."""

    status: str
    reason: str
    outputs: tuple[Array, ...]
    instructions: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Interpreter:
    """`pte_host_runner` with a folder for its files."""

    runner: Path
    folder: Path

    def run(
        self,
        program: bytes,
        method: str,
        inputs: Sequence[Array | None],
        *,
        planned: Sequence[int] | None = None,
        repeats: int = 1,
        timeout_s: float = 60,
        trailer: str | None = None,
    ) -> Run:
        """Run `method`; `planned` (bytes of the planned buffers) is read from the program unless it is given.

        An input of None is left as it is. A crash, a sanitizer's report or a time-out fails the test. `trailer` is
        what the last line, after the status, starts with: some runners say more.
        """
        if planned is None:
            planned = pte.parse(program).plan(method).non_const_buffer_sizes[1:]
        model = self.folder / "model.pte"
        model.write_bytes(program)
        for stale in self.folder.glob("output*.bin"):
            stale.unlink()
        argv = [str(self.runner), str(model), method, str(repeats), ",".join(map(str, planned)) or "-"]
        argv.append(str(self.folder / "output"))
        argv += [self._input_file(index, array) for index, array in enumerate(inputs)]
        result = proc.run(argv, timeout_s=timeout_s, check=False)
        lines = tuple(result.output.splitlines())
        assert result.returncode in (0, 1), f"exit {result.returncode}: {result.output[-3000:]}"
        assert lines, "no output"
        if trailer is not None:
            assert lines[-1].startswith(trailer), result.output[-3000:]
            lines = lines[:-1]
        assert lines[-1].startswith("status "), result.output[-3000:]
        status, _, reason = lines[-1].removeprefix("status ").partition(": ")
        assert (status == "ok") == (result.returncode == 0)
        return Run(status, reason, self._outputs(lines), _instructions(lines), lines)

    def _input_file(self, index: int, array: Array | None) -> str:
        if array is None:
            return "-"
        path = self.folder / f"input{index}.bin"
        path.write_bytes(array.tobytes())
        return str(path)

    def _outputs(self, lines: Sequence[str]) -> tuple[Array, ...]:
        outputs = []
        for words in (line.split() for line in lines):
            if words[0] == "output" and words[2] not in NO_TENSOR:
                dims = [tuple(int(number) for number in word.split(":")) for word in words[3:]]
                raw = (self.folder / f"output{words[1]}.bin").read_bytes()
                outputs.append(_in_index_order(numpy.frombuffer(raw, words[2]), dims))
        return tuple(outputs)


def _in_index_order(elements: Array, dims: Sequence[tuple[int, ...]]) -> Array:
    """The tensor whose elements lie in memory order; `dims` holds each dimension's size and dim_order entry."""
    order = [entry for _, entry in dims]
    stored = elements.reshape([dims[dim][0] for dim in order])
    return numpy.ascontiguousarray(stored.transpose(numpy.argsort(order))).reshape([size for size, _ in dims])


def _instructions(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.split(maxsplit=2)[2].strip() for line in lines if line.startswith("instruction "))


def same_bits(left: Array, right: Array) -> bool:
    """Equal dtype, shape and bytes, but any NaN is as good as another."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind != "f":
        return left.tobytes() == right.tobytes()
    nan = numpy.isnan(left)
    if not numpy.array_equal(nan, numpy.isnan(right)):
        return False
    return bool(left[~nan].tobytes() == right[~nan].tobytes())
