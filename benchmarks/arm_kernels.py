"""Instructions of the firmware's kernels beside those of CMSIS-NN in Arm's prebuilt runner, on QEMU.

    .venv/bin/python benchmarks/arm_kernels.py [--short]

The convolutions and linear layers have the shapes of MLPerf Tiny's networks: DS-CNN, MobileNetV1 0.25 at 96x96,
ResNet-8, the autoencoder. All calls are in one program, which each of the two executes once. Linear layers are so
short that the checks of arguments count: from each is taken what one of a single number takes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from elftools.elf.elffile import ELFFile
from rich.console import Console
from rich.table import Table

from ethosu_sdk.base.targets import Target
from ethosu_sdk.program import pte
from ethosu_sdk.simulate import arm_runners, simulation, simulators
from ethosu_sdk.simulate.block_counts import Mark

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
MULTIPLIER, SHIFT = 1518500250, -9  # 0.0014
INT8 = (0.02, 3, -128, 127)  # scale, zero point, range
# Where a call begins in Arm's runner, and the next one. Its linear layers write a log first.
KERNEL, NEXT = "kernel", "operator"
ARM_KERNEL = re.compile(
    r"_ZN8cortex_m6native\d+(quantized_(depthwise_)?conv2d|(de)?quantize_per_tensor)_outE|arm_fully_connected_s8$"
)
ARM_NEXT = "_ZN10executorch7runtime6Method19execute_instructionEv"


@dataclass(frozen=True)
class Layer:
    """One call: images are channels, height, width; `kernel` and `stride` are height, width."""

    network: str
    operator: str
    inputs: tuple[int, ...]
    outputs: int = 0
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The network, and the sizes."""
        sizes = "x".join(map(str, self.inputs))
        if not self.outputs:
            return f"{self.operator}, {sizes}"
        return (
            f"{self.network}: {self.operator}, {sizes} to {self.outputs}, {self.kernel[0]}x{self.kernel[1]}"
        )

    @property
    def size(self) -> int:
        """Products of the whole layer, those with padding included; elements of an operator without weights."""
        if not self.outputs:
            return math.prod(self.inputs)
        if self.operator == "linear":
            return self.inputs[0] * self.outputs
        channels, *sides = self.inputs
        rows = [
            (side + 2 * pad - window) // step + 1
            for side, pad, window, step in zip(sides, self.padding, self.kernel, self.stride, strict=True)
        ]
        depth = channels if self.operator == "conv2d" else 1
        return math.prod(rows) * self.outputs * depth * math.prod(self.kernel)


LAYERS = (
    Layer("DS-CNN", "conv2d", (1, 49, 10), 64, (10, 4), (2, 2), (5, 1)),
    Layer("DS-CNN", "conv2d", (64, 25, 5), 64),
    Layer("DS-CNN", "depthwise_conv2d", (64, 25, 5), 64, (3, 3), (1, 1), (1, 1)),
    Layer("DS-CNN", "linear", (64,), 12),
    Layer("MobileNetV1", "conv2d", (3, 96, 96), 8, (3, 3), (2, 2), (1, 1)),
    Layer("MobileNetV1", "depthwise_conv2d", (8, 48, 48), 8, (3, 3), (1, 1), (1, 1)),
    Layer("MobileNetV1", "depthwise_conv2d", (128, 6, 6), 128, (3, 3), (1, 1), (1, 1)),
    Layer("MobileNetV1", "conv2d", (128, 6, 6), 128),
    Layer("ResNet-8", "conv2d", (3, 32, 32), 16, (3, 3), (1, 1), (1, 1)),
    Layer("ResNet-8", "conv2d", (16, 32, 32), 16, (3, 3), (1, 1), (1, 1)),
    Layer("ResNet-8", "conv2d", (32, 16, 16), 64, (3, 3), (2, 2), (1, 1)),
    Layer("Autoencoder", "linear", (640,), 128),
    Layer("Autoencoder", "linear", (128,), 128),
    Layer("", "quantize_per_tensor", (3, 96, 96)),
    Layer("", "dequantize_per_tensor", (3, 96, 96)),
)
SHORT = (LAYERS[3], LAYERS[5])  # to see that all works
# Called last, twice: the report of Arm's runner follows the second.
SMALLEST = Layer("", "linear", (1,), 1)


def make_call(torch: Any, layer: Layer) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the call's tensors, and those tensors."""
    random = numpy.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return torch.from_numpy(random.integers(-128, 128, shape, dtype=numpy.int8))

    if not layer.outputs:
        convert = getattr(torch.ops.cortex_m, layer.operator)
        x = numbers(1, *layer.inputs)
        is_quantization = layer.operator == "quantize_per_tensor"
        return lambda x: convert(x, *INT8, torch.int8), (x * 0.021 if is_quantization else x,)
    bias = torch.zeros(layer.outputs, dtype=torch.int32)
    operator = getattr(torch.ops.cortex_m, f"quantized_{layer.operator}")
    if layer.operator == "linear":

        def call_linear(x: Any, weight: Any, bias: Any) -> Any:
            return operator(x, weight, None, bias, 13, 0, 0, [MULTIPLIER], [SHIFT], 127, -128)

        return call_linear, (numbers(1, layer.inputs[0]), numbers(layer.outputs, layer.inputs[0]), bias)
    is_depthwise = layer.operator == "depthwise_conv2d"
    window = (list(layer.stride), list(layer.padding), [1, 1], *([1] if is_depthwise else []))

    def call(x: Any, weight: Any, bias: Any, multipliers: Any, shifts: Any, scratch: Any) -> Any:
        return operator(x, weight, bias, *window, 13, 0, multipliers, shifts, -128, 127, scratch)

    x = numbers(1, *layer.inputs).to(memory_format=torch.channels_last)
    channels = (1, layer.outputs) if is_depthwise else (layer.outputs, layer.inputs[0])
    weight = numbers(channels[0], *layer.kernel, channels[1])
    scales = [torch.full((layer.outputs,), number, dtype=torch.int32) for number in (MULTIPLIER, SHIFT)]
    return call, (x, weight, bias, *scales, torch.zeros(1, dtype=torch.uint8))


def write_program(path: Path, layers: Sequence[Layer]) -> None:
    """A program that makes each call once, and a file with their inputs beside it."""
    import executorch.backends.cortex_m.passes  # noqa: F401 (registers the operators)
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge

    made = [make_call(torch, layer) for layer in (*layers, SMALLEST, SMALLEST)]

    class Calls(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            outputs = []
            for call, own in made:
                outputs.append(call(*inputs[: len(own)]))
                inputs = inputs[len(own) :]
            return tuple(outputs)

    inputs = tuple(tensor for _, own in made for tensor in own)
    edge = to_edge(
        torch.export.export(Calls(), inputs), compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    path.write_bytes(edge.to_executorch().buffer)
    numpy.savez(path.with_suffix(".npz"), **{f"input{i}": x.numpy() for i, x in enumerate(inputs)})


def count_own(path: Path) -> list[int]:
    """Instructions of the kernel of each call in the firmware."""
    options = ("--inputs", path.with_suffix(".npz").name, "--cpu-cycles", "-q", "-o", "own")
    subprocess.run([COMMAND, "run", path.name, *options], check=True, cwd=path.parent)
    record = json.loads((path.parent / "own" / "run.json").read_text(encoding="utf-8"))
    return [
        sum(part["instructions"]["value"] for part in operator["cpu_parts"] if part["part"] == KERNEL)
        for operator in record["operators"]
    ]


def arm_marks(elf: Path) -> Iterator[Mark]:
    """The first instructions of each kind of call, and of what executes the program's next one."""
    with elf.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        for symbol in table.iter_symbols():
            if symbol.name == ARM_NEXT or ARM_KERNEL.match(symbol.name):
                yield Mark(NEXT if symbol.name == ARM_NEXT else KERNEL, symbol["st_value"] & ~1)


def count_arms(path: Path) -> list[int]:
    """Instructions of each call in Arm's runner, from its beginning to the next call."""
    program = pte.parse(path.read_bytes())
    adapted = arm_runners.adapted_program(program, program.plan()).program
    runner = arm_runners.runner_for(None)
    plan = adapted.plan()
    with numpy.load(path.with_suffix(".npz")) as arrays:
        inputs = [_in_memory(arrays[f"input{i}"]) for i in range(len(plan.inputs))]
    placed = arm_runners.placed_inference(runner, plan, bytes(adapted.data), inputs)
    elf = arm_runners.runner_executable(runner)
    simulator = simulators.create_simulator("qemu", None, simulators.SimulatorOptions(), runner.board)
    # No call uses the NPU, but the runner looks for one.
    npu = Target(runner.npus[0], runner.default_macs, system_config="", memory_mode="")
    request = simulation.SimulationRequest(
        elf=elf,
        images=placed.images,
        target=npu,
        timeout_s=600,
        idle_timeout_s=600,
        uart_log=path.with_name("uart.log"),
        end_marks=(b"\x04",),
        read_back=placed.read_back,
        marks=tuple(arm_marks(elf)),
        count_instructions=True,
    )
    counts = simulator.run(request).block_counts
    if counts is None or counts.marks_lost:
        raise SystemExit("QEMU counted no instructions")
    each = counts.instructions()
    return [int((each[row.blocks] * row.executions).sum()) for row in counts.segments if row.name == KERNEL]


def _in_memory(array: Any) -> bytes:
    """The bytes of an input: images lie pixel by pixel."""
    return bytes((array.transpose(0, 2, 3, 1) if array.ndim == 4 else array).tobytes())


def compare(path: Path, layers: Sequence[Layer]) -> Table:
    """What the program at `path` takes on both."""
    table = Table("instructions per product or element", "Arm's", "own", "own to Arm's")
    calls = list(zip((*layers, SMALLEST, SMALLEST), count_arms(path), count_own(path), strict=True))
    for layer, *counts in calls[: len(layers)]:
        least = calls[len(layers)][1:] if layer.operator == "linear" else (0, 0)
        arm, own = (count - fixed for count, fixed in zip(counts, least, strict=True))
        table.add_row(layer.name, f"{arm / layer.size:.3f}", f"{own / layer.size:.3f}", f"{own / arm:.2f}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description="Count instructions of kernels, beside those of Arm's runner."
    )
    parser.add_argument("--short", action="store_true", help="two layers only")
    parser.add_argument(
        "--write", type=Path, help=argparse.SUPPRESS
    )  # in a process of its own: torch is large
    given = parser.parse_args()
    layers = SHORT if given.short else LAYERS
    if given.write:
        write_program(given.write, layers)
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "calls.pte"
        command = [sys.executable, __file__, *sys.argv[1:], "--write", path]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        Console(width=120).print(compare(path, layers))


if __name__ == "__main__":
    main()
