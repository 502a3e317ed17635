"""Arm's prebuilt runners with CMSIS-NN: one inference on the CPU, block by block."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ethosu_sdk.base import tools
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.simulate.arm_runners import runner_executable, runner_for
from ethosu_sdk.simulate.block_counts import Block
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest

_MODEL_AT, _INPUTS_AT = 0x9000_0000, 0x9200_0000
_END = b"\x04"
_DONE = b"Inference completed."
_TIMEOUT_S = 300.0
_MOST_BYTES = 1 << 11
_BLOCK = np.dtype(
    [(name, "<u8") for name in ("start", "size", "instructions", "executions", "before", "after")]
    + [("code", "u1", _MOST_BYTES)]
)
_PLUGIN = Path(__file__).parent / "blocks.c"


@dataclass(frozen=True)
class Kit:
    """A runner: its ELF, the machine for it, and the function that is one inference."""

    board: str
    program: str  # the QEMU that has the machine
    npu: str
    macs: int
    inference: str
    folder: str = ""  # of the package; empty for the runner that the SDK knows


_SSE_310 = "inference_runner-sse-310-26.03.0-tflm-ethos-U55-Default-noTA"
_INVOKE = "_ZN6tflite16MicroInterpreter6InvokeEv"
KITS: Mapping[str, Kit] = {
    # Compiled for Cortex-M85, optimised, by GNU 13.2.1. That of SSE-300 is not optimised.
    "tflm": Kit("corstone-310", "qemu-corstone", "ethos-u55", 128, _INVOKE, _SSE_310),
    # Compiled for Cortex-M55.
    "executorch": Kit(
        "corstone-300", "qemu-system-arm", "ethos-u55", 128, "_ZN10executorch7runtime6Method7executeEv"
    ),
}


def inference(kit: Kit, model: bytes, inputs: bytes = b"") -> list[Block]:
    """What the CPU executes from the start of the first inference to its end. SimulationError for another outcome."""
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-blocks-") as name:
        folder = Path(name)
        elf = _elf(kit)
        start, end = _bounds(elf, kit.inference)
        out = folder / "blocks.bin"
        program = folder / "qemu"
        options = f"{_plugin()},from={start:#x},to={end:#x},out={out}"
        program.write_text(f'#!/bin/sh\nexec {tools.require(kit.program).path} -plugin {options} "$@"\n')
        program.chmod(0o755)
        images = ((_MODEL_AT, model), *([(_INPUTS_AT, inputs)] if inputs else []))
        result = QemuSimulator(program=program, board=kit.board).run(
            SimulationRequest(
                elf=elf,
                images=images,
                target=Target(kit.npu, kit.macs, system_config="", memory_mode=""),
                timeout_s=_TIMEOUT_S,
                idle_timeout_s=_TIMEOUT_S,
                uart_log=folder / "uart.log",
                end_marks=(_END,),
                count_instructions=True,  # a clock that repeats: the same interrupts at the same places
            )
        )
        if _DONE not in result.uart or b"ERROR" in result.uart:
            raise SimulationError(
                "the runner did not complete: " + result.uart.decode(errors="replace")[-600:]
            )
        return _blocks(out)


def _elf(kit: Kit) -> Path:
    known = runner_executable(runner_for("ethos-u55"))
    return known.parents[1] / kit.folder / known.name if kit.folder else known


def _blocks(path: Path) -> list[Block]:
    rows = np.memmap(path, _BLOCK, mode="r")
    executions: Counter[tuple[int, bytes, int]] = Counter()
    for row in rows[rows["after"] > rows["before"]]:
        code = row["code"][: row["size"]].tobytes()
        executions[int(row["start"]), code, int(row["instructions"])] += int(row["after"] - row["before"])
    return [
        Block(start, start + len(code), instructions, code, count)
        for (start, code, instructions), count in executions.items()
    ]


@functools.cache
def _plugin() -> Path:
    """The plugin, compiled; its folder goes with the process."""
    folder = tempfile.TemporaryDirectory(prefix="ethosu-sdk-plugin-")
    _KEPT.append(folder)
    target = Path(folder.name) / "blocks.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", target, _PLUGIN], check=True)
    return target


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def _bounds(elf: Path, function: str) -> tuple[int, int]:
    """The address of `function`, and the one behind its only call."""
    listing = subprocess.run(["arm-none-eabi-objdump", "-d", elf], check=True, capture_output=True, text=True)
    lines = listing.stdout.splitlines()
    start = next(line for line in lines if line.endswith(f"<{function}>:"))
    calls = [
        number
        for number, line in enumerate(lines)
        if re.search(rf"\tbl\t[0-9a-f]+ <{re.escape(function)}>", line)
    ]
    (call,) = calls
    return int(start.split()[0], 16), int(lines[call + 1].split(":")[0], 16)
