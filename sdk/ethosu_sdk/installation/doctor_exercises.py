"""What `doctor` makes each tool do: small, but the tool's own work. Raises SdkError when it goes wrong."""

from __future__ import annotations

import base64
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from ethosu_sdk.base import proc, tools
from ethosu_sdk.base.errors import SdkError, ToolError
from ethosu_sdk.firmware_build import cmake
from ethosu_sdk.program import pte_schema

DATA = Path(__file__).parent / "doctor_data"
_TIMEOUT_S = 10.0
_IMPORT_TIMEOUT_S = 40.0  # torch from a cold disk
_ELF = "probe.elf"
_COMPILER_FLAGS = (
    *("-std=c++17", "-Os", "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard"),
    *("-fno-exceptions", "-fno-rtti", "-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs"),
)
# The board as `run` starts it, without the NPU; see simulate/qemu/machine.py.
_QEMU_FLAGS = (
    *("-M", "mps3-an547", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"),
    *("-nic", "user,restrict=on", "-semihosting-config", "enable=on,target=native"),
)
_RIGHT_SUM, _RIGHT_STATUS = "doctor: the sum is 15", 42  # probe.cpp
_HEADER_VERSION = re.compile(r"#define FLATBUFFERS_VERSION_(?:MAJOR|MINOR|REVISION) (\d+)")
_WEIGHTS = (1, -2, 3, 0, 0, 0, 7, -128, 127) * 20

_ADDITION, _ADDITION_TEXT = b"\x22\xef\x44\x08", "vadd.i32 q0, q1, q2"
_ADDITION_FIGURES = (1, (("M55UnitVecALU", 1, 2),))  # ARMScheduleM55.td


class NotTriedError(SdkError):
    """An exercise cannot run because an earlier one left no files."""


def _run_tool(name: str, *arguments: str | Path, cwd: Path) -> str:
    argv = [str(tools.require(name).path), *map(str, arguments)]
    return proc.run(argv, timeout_s=_TIMEOUT_S, cwd=cwd, error=ToolError).output.strip()


def _run_python(code: str, folder: Path, timeout_s: float) -> str:
    argv = [sys.executable, "-c", code]
    return proc.run(argv, timeout_s=timeout_s, cwd=folder, error=ToolError).output.strip()


def compile_firmware(folder: Path) -> str:
    """Compile and link C++ for the Cortex-M55, hard-float."""
    words = (*_COMPILER_FLAGS, "-T", DATA / "probe.ld", DATA / "probe.cpp", "-o", _ELF)
    _run_tool("arm-none-eabi-g++", *words, cwd=folder)
    if not (folder / _ELF).is_file():
        raise ToolError("the compiler succeeded, but wrote no file", "install it again")
    return "compiled and linked C++ for cortex-m55, hard-float"


def boot_firmware(folder: Path) -> str:
    """Boot what :func:`compile_firmware` left in `folder`; it ends itself by semihosting."""
    if not (folder / _ELF).is_file():
        raise NotTriedError("not tried: the compiler wrote no firmware to boot")
    argv = [str(tools.require("qemu-system-arm").path), *_QEMU_FLAGS, "-kernel", str(folder / _ELF)]
    done = proc.run(argv, timeout_s=_TIMEOUT_S, cwd=folder, error=ToolError, check=False)
    if (done.returncode, _RIGHT_SUM in done.output) != (_RIGHT_STATUS, True):
        said = proc.tail(done.output, 3) or "nothing"
        raise ToolError(f"the booted firmware failed: exit status {done.returncode}, it printed {said}")
    return "booted that firmware on mps3-an547: FPU right, ended by semihosting"


def count_blocks(folder: Path) -> str:
    """Count what the firmware that :func:`compile_firmware` left in `folder` executes on Debian's QEMU."""
    from ethosu_sdk.simulate.simulation import SimulationRequest
    from ethosu_sdk.simulate.simulators import create_simulator

    simulator = create_simulator("qemu")
    if not (folder / _ELF).is_file():
        raise NotTriedError("not tried: there is no firmware to boot")
    if reason := simulator.no_block_counts():
        raise ToolError(reason)
    request = SimulationRequest(
        elf=folder / _ELF,
        images=(),
        target=None,
        timeout_s=_TIMEOUT_S,
        idle_timeout_s=_TIMEOUT_S,
        uart_log=folder / "uart.log",
        semihosting_cwd=folder,
        marks=(),
    )
    counts = simulator.run(request).block_counts
    executed = 0 if counts is None else sum(row.executions * row.instructions for row in counts.blocks)
    if not executed:
        raise ToolError("it counted nothing")
    return f"counted the {executed:,} instructions of that firmware"


def disassemble(folder: Path) -> str:
    """Disassemble an instruction of Cortex-M55 with llvm-mc."""
    code = " ".join(f"{byte:#04x}" for byte in _ADDITION)
    (folder / "code").write_text(f"[{code}]\n", encoding="utf-8")
    words = ("-triple=thumbv8.1m.main-none-eabi", "-mcpu=cortex-m55", "--disassemble", "code")
    if _ADDITION_TEXT not in " ".join(_run_tool("llvm-mc-19", *words, cwd=folder).split()):
        raise ToolError(f"it does not read the code of {_ADDITION_TEXT}")
    return f"disassembled {_ADDITION_TEXT}"


def price(_folder: Path) -> str:
    """Price that instruction, as `run --cpu-cycles` does."""
    from ethosu_sdk.simulate import llvm_figures

    (row,) = llvm_figures.figures_of([_ADDITION], llvm_figures.core_of("cortex-m55"), _TIMEOUT_S).values()
    if (row.text, row.latency, row.units) != (_ADDITION_TEXT, *_ADDITION_FIGURES):
        raise ToolError(f"it prices {_ADDITION_TEXT} as {row.latency} cycles and {row.units}")
    return f"priced {_ADDITION_TEXT} for cortex-m55"


def configure(folder: Path) -> str:
    shutil.copyfile(DATA / "CMakeLists.txt", folder / "CMakeLists.txt")
    _run_tool("cmake", "-S", ".", "-B", "made", "-G", "Ninja", cwd=folder)
    return "configured a project for Ninja"


def build(folder: Path) -> str:
    """Build what :func:`configure` left in `folder`."""
    if not (folder / "made" / "build.ninja").is_file():
        raise NotTriedError("not tried: CMake wrote no project to build")
    _run_tool("ninja", "-C", "made", "probe", cwd=folder)
    if not (folder / "made" / "copy.txt").is_file():
        raise ToolError("it succeeded, but built nothing", "install it again")
    return "built that project"


def compile_schema(folder: Path) -> str:
    """Compile the `.pte` schema to C++; the FlatBuffers headers must be of the compiler's version."""
    schema = folder / pte_schema.FILE_NAME
    schema.write_text(pte_schema.program_fbs(), encoding="utf-8")
    _run_tool("flatc", "--cpp", "-o", folder, schema, cwd=folder)
    if not (folder / "program_generated.h").is_file():
        raise ToolError("it succeeded, but wrote no header", "install it again")
    headers = [Path(root) / "flatbuffers" / "base.h" for root in cmake.INCLUDE_ROOTS]
    header = next((path for path in headers if path.is_file()), None)
    if header is None:
        raise ToolError("the FlatBuffers headers are missing", "apt-get install libflatbuffers-dev")
    version = ".".join(_HEADER_VERSION.findall(header.read_text(encoding="utf-8", errors="replace")))
    if version != tools.require("flatc").version:
        raise ToolError(f"its headers ({header}) are version {version}", "install both from the same source")
    return "compiled the .pte schema; its headers are of its version"


def decode_weights(folder: Path) -> str:
    """Ask Vela its version and have its weight coder code and decode."""
    code = (
        f"from ethosu import mlw_codec; weights = list({_WEIGHTS!r}); "
        "print(mlw_codec.decode(mlw_codec.encode(weights))[:len(weights)] == weights)"
    )
    fix = tools.tool_table()["ethos-u-vela"].fix
    if _run_python(code, folder, _TIMEOUT_S) != "True":
        raise ToolError("its weight decoder does not return the weights that were encoded", fix)
    vela = shutil.which("vela", path=str(Path(sys.executable).parent)) or "vela"
    said = proc.run([vela, "--version"], timeout_s=_TIMEOUT_S, cwd=folder, error=ToolError).output.strip()
    if said != tools.require("ethos-u-vela").version:
        raise ToolError(f"`vela --version` says {said!r}", fix)
    return "started it; coded and decoded weights"


def find_runtime(_folder: Path) -> str:
    tools.executorch_root()
    return "its C++ runtime is in it"


def add_tensors(folder: Path) -> str:
    """Import torch in a process of its own, and add."""
    code = "import torch; print(int((torch.arange(5) + torch.arange(5)).sum()))"
    if _run_python(code, folder, _IMPORT_TIMEOUT_S).split()[-1:] != ["20"]:
        raise ToolError("it computes wrong sums", tools.tool_table()["torch"].fix)
    return "imported it and added tensors"


def import_reference_model(folder: Path) -> str:
    """Import the TOSA reference model in a process of its own: it prints what it likes."""
    _run_python("import tosa_reference_model; tosa_reference_model.run", folder, _IMPORT_TIMEOUT_S)
    return "imported it"


# Tools that take part in one piece of work follow each other; the groups are independent.
GROUPS: tuple[dict[str, Callable[[Path], str]], ...] = (
    {"torch": add_tensors},
    {
        "arm-none-eabi-g++": compile_firmware,
        "qemu-system-arm": boot_firmware,
        "block-counts.so": count_blocks,
    },
    {"llvm-mc-19": disassemble, "llvm-mca-19": price},
    {"cmake": configure, "ninja": build},
    {"ethos-u-vela": decode_weights},
    {"flatc": compile_schema, "executorch": find_runtime},
    {"tosa-tools": import_reference_model},
)


def run_command_stream() -> str:
    """Run a convolution that Vela compiled through the NPU model, and compare with the TOSA reference model's output.

    Not in a thread: the model forks children for the weights.
    """
    import numpy as np

    from ethosu_sdk import npu

    sample = tomllib.loads((DATA / "sample.toml").read_text(encoding="utf-8"))
    values = np.frombuffer(base64.b64decode(sample["input"]), np.int8)
    result = npu.run(base64.b64decode(sample["payload"]), [values])
    if result.outputs[0].tobytes() != base64.b64decode(sample["output"]):
        message = "the NPU model's output is not the TOSA reference model's"
        raise ToolError(message, "install ethosu-sdk again")
    return f"ran a convolution for {sample['target']}: output equals the TOSA reference model's"
