"""Instructions of the firmware's kernels for each element, on QEMU's Cortex-M55.

    .venv/bin/python benchmarks/kernels.py [--short]

One program calls every operator once on tensors of one shape. The ratio is to a copy of as many float32 elements,
the least that an operator with a float32 input and output can take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
CHANNELS, SIDE, SHORT_SIDE = 16, 56, 8
YARDSTICK = "dim_order_ops::_clone_dim_order.out"
MODEL = """
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators

DECOMPOSED = torch.ops.quantized_decomposed
RANGE = (0.02, 3, -128, 127, torch.int8)
RANGE_16 = (0.0002, 0, -32767, 32767, torch.int16)


class Operators(torch.nn.Module):
    def forward(self, x, y, k):
        return (
            x.clone(),
            DECOMPOSED.quantize_per_tensor(x, *RANGE),
            DECOMPOSED.quantize_per_tensor(y, *RANGE_16),
            DECOMPOSED.dequantize_per_tensor(k, *RANGE),
            torch.permute_copy(x, (0, 2, 3, 1)),
            torch.cat([x, y], 1),
            torch.cat([k, k], 3),
            x + y,
            torch.relu(x),
            x.mean((2, 3)),
            torch.softmax(x, 3),
            torch.nn.functional.avg_pool2d(x, 3, 2),
            torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        )


model = Operators().eval()
torch.manual_seed(0)
shape = (1, CHANNELS, SIDE, SIDE)
example_inputs = (torch.randn(shape), torch.randn(shape), torch.randint(-128, 127, shape, dtype=torch.int8))
"""


def run_operators(folder: Path, side: int) -> dict[str, Any]:
    """The record of a run of the program above on images of `side` rows and columns."""
    text = f"CHANNELS, SIDE = {CHANNELS}, {side}\n{MODEL}"
    (folder / "operators.py").write_text(text, encoding="utf-8")
    options = ("--no-delegate", "--quantize", "none", "--no-check", "--cpu-cycles", "-q", "-o", "out")
    subprocess.run([COMMAND, "run", "operators.py", *options], check=True, cwd=folder)
    record: dict[str, Any] = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
    return record


def kernel_counts(record: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Operator, instructions and modelled cycles of its kernel, in the order of execution."""
    rows = []
    for operator in record["operators"]:
        parts = [part for part in operator["cpu_parts"] if part["part"] == "kernel"]
        instructions = sum(part["instructions"]["value"] for part in parts)
        cycles = sum(part["cycles"]["value"] for part in parts)
        rows.append((operator["name"], instructions, cycles))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Count instructions and cycles of the firmware's kernels.")
    parser.add_argument("--short", action="store_true", help="smaller tensors")
    side = SHORT_SIDE if parser.parse_args().short else SIDE
    elements = CHANNELS * side * side
    with tempfile.TemporaryDirectory() as scratch:
        rows = kernel_counts(run_operators(Path(scratch), side))
    base = next(instructions for name, instructions, _ in rows if name == YARDSTICK)
    table = Table("operator", "instructions per element", "modelled cycles per element", "ratio to a copy")
    for name, instructions, cycles in rows:
        each, time = f"{instructions / elements:.2f}", f"{cycles / elements:.2f}"
        table.add_row(name, each, time, f"{instructions / base:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
