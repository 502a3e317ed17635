"""How long `ethosu-sdk compile zoo:ds_cnn` takes, beside the bare ExecuTorch calls on the same model.

Both are whole processes, start-up included, and run in turn, so that both see the same load of the machine. The
ratio of their medians is to stay below LIMIT.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
MODEL, TARGET = "ds_cnn", "ethos-u55-128"
REPEATS = 3
LIMIT = 1.2


@dataclass(frozen=True)
class Times:
    """Seconds of a process and its children: on the wall, and of all cores together."""

    wall_s: float
    cpu_s: float


def timed(*argv: str | Path) -> Times:
    """Run a program to its end."""
    start, before = time.perf_counter(), os.times()
    subprocess.run(argv, check=True, capture_output=True)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Times(time.perf_counter() - start, cpu_s)


def bare(path: Path) -> None:
    """What a user's own script does: quantise, lower and write the zoo's model, with nothing of the SDK."""
    import torch
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from ethosu_sdk.aot import zoo

    model = zoo.load(MODEL)
    spec = EthosUCompileSpec(TARGET)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    program = torch.export.export(model.module, model.example_inputs)
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    for sample in model.calibration:
        prepared(*sample)
    edge = to_edge_transform_and_lower(
        torch.export.export(convert_pt2e(prepared), model.example_inputs),
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    path.write_bytes(edge.to_executorch(config=config).buffer)


def main() -> None:
    """Measure and print."""
    from rich.console import Console
    from rich.table import Table

    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder, program = Path(scratch, "out"), Path(scratch, "bare.pte")
        for _ in range(REPEATS):
            theirs.append(timed(sys.executable, Path(__file__), "--bare", program))
            ours.append(timed(COMMAND, "compile", f"zoo:{MODEL}", "--target", TARGET, "-o", folder))
        same = program.read_bytes() == (folder / f"{MODEL}.pte").read_bytes()
    table = Table("", "ethosu-sdk compile", "bare calls", "ratio", title=f"{MODEL}, {TARGET}")
    for name in ("wall_s", "cpu_s"):
        left, right = (sorted(getattr(row, name) for row in rows)[REPEATS // 2] for rows in (ours, theirs))
        table.add_row(name, f"{left:.2f}", f"{right:.2f}", f"{left / right:.2f}")
    Console().print(table, f"limit of the ratio: {LIMIT}; the programs are {'' if same else 'not '}identical")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        bare(Path(sys.argv[2]))
    else:
        main()
