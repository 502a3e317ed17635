"""How fast the NPU model runs MobileNetV2, as ratios to the TOSA reference model in the same run.

    .venv/bin/python benchmarks/npu_model.py [--short]

Prints, for each target, the first inference (weights decoded), the second one, the reference model, and the ten
operations that take longest. Programs that build/ does not have are compiled first (not timed). --short is one layer
on one target, compiled in a temporary folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tosa_reference_model
from rich.console import Console
from rich.table import Table
from stopwatch import median_s

from ethosu_sdk import npu
from ethosu_sdk.npu.execute import Executor
from ethosu_sdk.npu.memory import FixedRegions, Memory
from ethosu_sdk.npu.operation import BlockOp
from ethosu_sdk.npu.program import segment
from ethosu_sdk.npu.weight_cache import WeightCache
from ethosu_sdk.program import pte

TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
LONGEST = 10
MODEL = "zoo:mobilenet_v2"
SHORT = f"{Path(__file__).with_name('compile_models.py')}:small"


def program_of(model: str, target: str, folder: Path) -> tuple[bytes, bytes]:
    """The delegate's payload of `model` for `target`, and the TOSA graph that it was compiled from."""
    if not [*folder.glob("*.pte")]:
        command = Path(sys.executable).with_name("ethosu-sdk")
        subprocess.run([command, "compile", model, "--target", target, "-q", "-o", folder], check=True)
    (program,) = folder.glob("*.pte")
    (delegate,) = pte.read(program).plan("forward").delegates
    return bytes(delegate.payload), (folder / "delegate0.tosa").read_bytes()


def operation_times(program: npu.Program) -> list[tuple[float, str, str]]:
    """(seconds, name, shapes) of every operation, weights decoded before."""
    blocks = program.blocks
    regions = {number: np.zeros(size, np.uint8) for number, size in program.reach.sizes.items()}
    regions[0] = np.frombuffer(blocks.weights, np.uint8)
    memory = Memory(FixedRegions(regions), program.config.own_bytes)
    listed = segment(bytes(blocks.command_stream), program.config).operations
    cache = WeightCache()
    cache.prepare(listed, memory, program.config)
    executor = Executor(program.config, memory, cache)
    found = []
    for op in listed:
        taken = median_s(lambda op=op: executor.run(op), 1)  # type: ignore[misc]
        shapes = f"{op.ifm_shape} → {op.shape}" if isinstance(op, BlockOp) else f"{op.length} bytes"
        found.append((taken, op.name, shapes))
    return sorted(found, reverse=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the NPU model on MobileNetV2.")
    parser.add_argument("--short", action="store_true", help="one layer on one target")
    if not parser.parse_args().short:
        measure(MODEL, TARGETS, Path("build"))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(SHORT, TARGETS[:1], Path(folder))


def measure(model: str, targets: Sequence[str], folder: Path) -> None:
    """Measure `model` for each of the targets, and print; its programs are in `folder`."""
    console = Console()
    ratios = Table("target", "run", "seconds", "TOSA reference model", "times as fast")
    profiles = []
    for target in targets:
        payload, graph = program_of(model, target, folder / f"{model.rpartition(':')[2]}-{target}")
        program = npu.load(payload)
        image = np.random.default_rng(0).integers(-128, 128, program.blocks.inputs[0].shape[-4:], np.int8)
        first = median_s(lambda: npu.run(npu.load(payload), [image]), 3)  # noqa: B023 - called at once
        npu.run(program, [image])
        second = median_s(lambda: npu.run(program, [image]))  # noqa: B023
        tosa = median_s(lambda: tosa_reference_model.run(graph, [image], verbosity="LOW"), 3)  # noqa: B023
        for name, taken in (("first", first), ("second", second)):
            ratios.add_row(target, name, f"{taken:.3f}", f"{tosa:.3f}", f"{tosa / taken:.1f}")
        profile = Table("ms", "share", "operation", "IFM → OFM (height, width, depth)", title=target)
        times = operation_times(program)
        total = sum(row[0] for row in times)
        for taken, name, shapes in times[:LONGEST]:
            profile.add_row(f"{1000 * taken:.2f}", f"{100 * taken / total:.1f} %", name, shapes)
        profiles.append(profile)
    console.print(ratios, *profiles)


if __name__ == "__main__":
    main()
