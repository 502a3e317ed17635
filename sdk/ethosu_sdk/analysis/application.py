"""`export --app`: a complete application for Zephyr, or as a CMSIS solution, for one program on ExecuTorch's runtime.

The C++ is that of firmware/exported. It runs on this machine first, with ExecuTorch's own runtime and the NPU model,
which says how much memory it takes.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk import __version__
from ethosu_sdk.base import cache, filesystem, resources, tools
from ethosu_sdk.base.boards import Board, board_named
from ethosu_sdk.base.errors import InputError, SimulationError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.firmware_build import generated_files, program_checks
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.protocol import INSTRUCTION_KINDS
from ethosu_sdk.records.build import Library
from ethosu_sdk.run import evidence, execution, input_image, input_values, uart
from ethosu_sdk.run.evidence import Evidence, ExpectedRun

_CODE_BYTES = 0x4_0000  # application and ExecuTorch need up to 200 KiB; Corstone-320's ITCM has 32
_EXECUTORCH = "executorch"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")  # of methods and backends, which become C++ text
_AMPLE_BYTES = 64 << 20  # for a first run that measures
_STEP_BYTES = 64
_NO_COMMENT = re.compile(r"[^A-Za-z0-9_.+-]")
_SHARED = ("crc32", "input_image", "record_writer", "sha256")
_HEADERS = (
    "app/crc32.hpp",
    "app/input_image.hpp",
    "app/record.hpp",
    "app/record_writer.hpp",
    "app/sha256.hpp",
)

# Board of the SDK → its name for `west build`.
_WEST_BOARDS = {"corstone-300": "mps3/corstone300/fvp", "corstone-320": "mps4/corstone320/fvp"}
# The NPU's registers as Zephyr's device trees and Arm's packs address them: a node at another address would be a
# second NPU.
_NPU_BASES = {"corstone-300": 0x4810_2000, "corstone-320": 0x5000_4000}
# Board of the SDK → its pack, its names there, and the NPU's interrupt in the device header.
_PACKS = {
    "corstone-300": {
        "board": "ARM::V2M_MPS3_SSE_300_BSP@1.5.0",
        "name": "ARM::V2M-MPS3-SSE-300-FVP",
        "device": "ARM::SSE-300-MPS3",
        "interrupt": "ETHOS_U55",
    },
    "corstone-320": {
        "board": "ARM::SSE_320_BSP@1.0.0",
        "name": "ARM::SSE-320",
        "device": "ARM::SSE-320-FVP",
        "interrupt": "NPU0",
    },
}
# Namespace of an operator → the category of its component in ExecuTorch's pack. A component is named after the file
# with the kernels, without leading underscores; the files of quantised kernels have all schemes of an operator.
_CATEGORIES = {
    "aten": "Portable",
    "dim_order_ops": "Portable",
    "quantized_decomposed": "Quantized",
    "cortex_m": "Cortex-M",
}
_SCHEME = re.compile(r"^(quantize|dequantize)_per_.*$|_byte$")


class Sizes(Struct, frozen=True):
    """Bytes of the application's pools."""

    planned: int
    method_pool: int
    temp_pool: int


@dataclass(frozen=True)
class ProgramToExport:
    """A program that was read, with what the other settings of `export` found out about it."""

    path: Path
    program: pte.Pte
    plan: ExecutionPlan
    target: Target | None
    libraries: Sequence[Library]
    kernels: Sequence[str]

    @property
    def name(self) -> str:
        """The file's name as comments of C, device tree and Markdown can hold it."""
        return _NO_COMMENT.sub("_", self.path.name)

    @property
    def board(self) -> Board:
        return board_named(
            "corstone-320" if self.target and self.target.npu == "ethos-u85" else "corstone-300"
        )


def check(exported: ProgramToExport) -> None:
    """InputError for a program that an application cannot run."""
    if exported.program.data_files:
        raise InputError(
            "an application for a program with data files cannot be exported",
            "compile the model without --external-weights",
        )
    if any(row.kind == INSTRUCTION_KINDS["jump"] for row in exported.plan.instructions):
        raise InputError(
            "an application for a program with branches cannot be exported: its instructions have no fixed order",
            "replace torch.cond in the model",
        )
    for name in (exported.plan.name, *(row.id for row in exported.plan.delegates)):
        if not _NAME.fullmatch(name):
            raise InputError(f"{name[:80]!r} cannot be a name in C++", "rename the method and compile again")


def encoded_inputs(exported: ProgramToExport) -> tuple[bytes, input_values.Samples]:
    """The input image with the example inputs beside the program, or random ones."""
    samples = input_values.load_samples(None, exported.path, exported.plan)
    tensors = exported.plan.input_tensors()
    sets = [
        [input_values.physical_bytes(array, tensor) for array, tensor in zip(row, tensors, strict=True)]
        for row in samples.inferences
    ]
    return input_image.encode_image(sets), samples


class HostRun:
    """The application on this machine, for one program."""

    def __init__(self, exported: ProgramToExport, image: bytes, samples: input_values.Samples) -> None:
        from ethosu_sdk.simulate import host_runtime  # NumPy comes with it: not for --help

        self._runtime: Any = host_runtime
        self._exported = exported
        self._image = image
        self._samples = samples
        self._program = host_runtime.build_runner(
            cache.directory_or_own(host_runtime.CACHE_PART),
            host_runtime.application(generated_files.protocol_header()),
        )

    def run(self, sizes: Sizes) -> tuple[Evidence, bytes]:
        """What the application proved with pools of these `sizes`, and what it printed. ProtocolError, with the
        reason that it gives, when they do not suffice."""
        rows = (f"{kind}\t{name}\n" for kind, name in instructions_of(self._exported.plan))
        with tempfile.TemporaryDirectory(prefix="ethosu-sdk-application-") as name:
            folder = Path(name)
            filesystem.write_bytes(folder / "inputs.bin", self._image)
            filesystem.write_bytes(folder / "instructions.txt", "".join(rows).encode())
            argv = [
                *(str(self._exported.path), str(folder / "inputs.bin"), self._exported.plan.name),
                *(self._exported.board.name, str(folder / "instructions.txt")),
                *map(str, (sizes.planned, sizes.method_pool, sizes.temp_pool)),
            ]
            printed = self._runtime.run_application(self._program, argv, self._runtime.NpuModel())
        expected = ExpectedRun(
            model_sha256=self._exported.program.sha256,
            model_bytes=self._exported.program.size,
            board=self._exported.board.name,
            steps=input_values.as_kept(self._samples, self._exported.plan),
            outputs=len(self._exported.plan.outputs),
            method=self._exported.plan.name,
        )
        return evidence.evidence_of_run(uart.parse_uart(printed), expected, 0), printed

    def measured(self, planned: int) -> Sizes:
        """The sizes that the program takes, with which it ran. With a byte less in one of them it does not."""
        found, _ = self.run(Sizes(planned, _AMPLE_BYTES, _AMPLE_BYTES + self._scratch()))
        used = {row["name"]: row["used_bytes"] for row in found.memory}
        sizes = Sizes(used["planned"], used["method_pool"], used["temp_pool"])
        # To look up a kernel, ExecuTorch uses temporary memory only where there is more of it than it takes.
        low, high = sizes.temp_pool - 1, sizes.temp_pool
        while not self._suffices(replace(sizes, temp_pool=high)):
            if high - sizes.temp_pool > _AMPLE_BYTES:
                self.run(sizes)  # raises with the reason
            low, high = high, high + max(_STEP_BYTES, high - sizes.temp_pool)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffices(replace(sizes, temp_pool=middle)) else (middle, high)
        sizes = replace(sizes, temp_pool=high)
        again, _ = self.run(sizes)
        if again.crcs != found.crcs:
            raise SimulationError(
                "the application gave other outputs in smaller pools", "report this with the program"
            )
        return sizes

    def _suffices(self, sizes: Sizes) -> bool:
        try:
            self.run(sizes)
        except uart.ProtocolError:
            return False
        return True

    def _scratch(self) -> int:
        rows = (row.vela for row in self._exported.plan.delegates)
        return max((row.scratch_bytes for row in rows if row is not None), default=0)


def instructions_of(plan: ExecutionPlan) -> list[tuple[str, str]]:
    """Kind and name of each instruction, as the firmware reports them: only kernels and delegates have a name."""
    rows = execution.instructions(plan, None)
    return [(row.kind, "" if row.name == INSTRUCTION_KINDS[row.kind] else row.name) for row in rows]


def files_of(system: str, exported: ProgramToExport, image: bytes, sizes: Sizes) -> dict[str, bytes]:
    """The files of the application for `system`: path in its folder → content."""
    values = _values(exported, sizes)
    sources = _sources(system, exported)
    shown = sorted(name for name in sources if name.endswith((".cpp", ".S")))
    facts = {**values, "sources": [*shown, "exported/program.cpp"]}
    return {
        "model.pte": bytes(exported.program.data),
        "inputs.bin": image,
        "src/exported/program.cpp": _rendered("program.cpp", facts),
        **{f"src/{name}": content for name, content in sources.items()},
        **{path: _rendered(f"{system}/{name}", facts) for name, path in _places(system, exported)},
    }


def _places(system: str, exported: ProgramToExport) -> Iterator[tuple[str, str]]:
    """The templates of `system`, and where what they become lies."""
    if system == "zephyr":
        yield "board.overlay", f"boards/{_overlay(exported)}"
        yield from (
            (name, name) for name in ("CMakeLists.txt", "Kconfig", "prj.conf", "sections.ld", "README.md")
        )
        return
    yield from ((f"{name}.clayer.yml", f"layers/{name}.clayer.yml") for name in ("executorch", "board"))
    names = ("application.csolution.yml", "application.cproject.yml", "application.ld", "README.md")
    yield from ((name, name) for name in names)


def _overlay(exported: ProgramToExport) -> str:
    return _WEST_BOARDS[exported.board.name].replace("/", "_") + ".overlay"


def _sources(system: str, exported: ProgramToExport) -> dict[str, bytes]:
    """What the application takes over from the firmware, by the name below its src/."""
    firmware = resources.directory("firmware")
    counters = "npu_counters" if exported.plan.delegates else "no_npu_counters"
    names = [
        *("exported/platform.hpp", "exported/program.hpp", "exported/application.cpp", "exported/program.S"),
        *("exported/npu_counters.hpp", f"exported/{counters}.cpp", "npu/registers.hpp"),
        *("base/span.hpp", "base/text.hpp", "base/text.cpp"),
        *(f"app/{name}.cpp" for name in _SHARED),
        *_HEADERS,
    ]
    platform = f"platform_{system}.cpp"
    return {
        **{name: (firmware / name).read_bytes() for name in names},
        f"exported/{platform}": (firmware / "exported" / system / platform).read_bytes(),
        "app/protocol.hpp": generated_files.protocol_header().encode(),
        "npu/products.hpp": generated_files.npu_products().encode(),
    }


def _values(exported: ProgramToExport, sizes: Sizes) -> Mapping[str, Any]:
    """What the templates show."""
    board, target = exported.board, exported.target
    delegates = bool(exported.plan.delegates)
    known = {name for row in exported.libraries for name in row.kernels}
    npu = target.name.removeprefix("ethos-").replace("-", "_").upper() if target and delegates else ""
    pools = sizes.planned + sizes.method_pool + sizes.temp_pool
    is_dedicated = target is not None and target.memory_mode.startswith("Dedicated_Sram")
    return {
        "notice": f"{exported.name}, SHA-256 {exported.program.sha256}; by ethosu-sdk {__version__}",
        "model": exported.name,
        "executorch": tools.package_version(_EXECUTORCH),
        "method": exported.plan.name,
        "instructions": [{"kind": kind, "name": name} for kind, name in instructions_of(exported.plan)],
        "sizes": sizes,
        "fast_scratch": program_checks.fast_scratch_bytes([exported.plan]) or 0,
        "libraries": exported.libraries,
        "unknown": [name for name in exported.kernels if name not in known],
        "components": sorted({_component(name) for name in exported.kernels if name in known}),
        "uses_cmsis_nn": any("cmsis-nn" in row.links for row in exported.libraries),
        "npu": f"ETHOS_{npu}" if npu else "",
        "family": npu.partition("_")[0],
        "npu_base": _NPU_BASES[board.name],
        "npu_irq": board.npu_irq,
        "uart_base": board.uart0_base,
        "board": board.name,
        "memories": board.memories,
        "fast": board.fast.name,
        "near": board.near.name,
        "code": next(
            row.name for row in board.memories if "x" in row.access and row.size_bytes >= _CODE_BYTES
        ),
        "bulk": board.bulk,
        # Where the memory mode has it, and where there is room for it.
        "scratch_in_bulk": is_dedicated or pools > board.fast.size_bytes // 2,
        "west_board": _WEST_BOARDS[board.name],
        "overlay": _overlay(exported),
        "pack": _PACKS[board.name],
    }


def _component(kernel: str) -> str:
    namespace, _, name = kernel.partition("::")
    base = name.partition(".")[0].lstrip("_")
    if namespace == "quantized_decomposed":
        base = _SCHEME.sub(r"\1", base)
    return f"{_CATEGORIES[namespace]} {base}"


def _rendered(name: str, values: Mapping[str, Any]) -> bytes:
    template = resources.directory("firmware") / "exported" / f"{name}.j2"
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(values).encode()
