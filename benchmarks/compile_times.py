"""How long `ethosu-sdk compile` takes, as a ratio to ExecuTorch's bare `to_edge_transform_and_lower` in the same run.

    compile_times.py [--short | --repeats N] [--before SDK_FOLDER] [MODEL …]

MODEL is a name of MODELS; without, all of them. --short compiles one layer, once. Ours is the whole command:
start-up, export, calibration, lowering, records. Bare is the one call alone in a script without the SDK, on the same
quantised program; the whole script stands beside it. With --before, so does the command of another commit, whose
`sdk` folder that is. All run in turn, to see the same load of the machine; where others work too, the seconds of the
cores say more than those on the wall. The ratio is to stay below LIMIT.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
BEFORE = (sys.executable, "-c", "from ethosu_sdk.cli import main; main()")  # a door that every commit has
OWN_MODELS = Path(__file__).with_name("compile_models.py")
MODELS = {
    "ds_cnn": "zoo:ds_cnn",
    "mobilenet_v2": "zoo:mobilenet_v2",
    "transformer": f"{OWN_MODELS}:transformer",
    "gru": f"{OWN_MODELS}:gru",
}
SHORT = f"{OWN_MODELS}:small"
TARGET = "ethos-u55-128"
LIMIT = 1.3


@dataclass(frozen=True)
class Times:
    """Seconds on the wall, and of all cores together."""

    wall_s: float
    cpu_s: float


def _now(*, children: bool = False) -> Times:
    spent = os.times()
    cpu_s = spent.children_user + spent.children_system if children else spent.user + spent.system
    return Times(time.perf_counter(), cpu_s)


def _since(start: Times, *, children: bool = False) -> Times:
    end = _now(children=children)
    return Times(end.wall_s - start.wall_s, end.cpu_s - start.cpu_s)


def timed(*argv: str | Path, path: Path | None = None) -> tuple[Times, subprocess.CompletedProcess[str]]:
    """Run a program to its end; `path` is searched for Python modules before all else."""
    env = os.environ if path is None else {**os.environ, "PYTHONPATH": str(path)}
    start = _now(children=True)
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=env)
    return _since(start, children=True), done


def _load(model: str) -> tuple[Any, Any, Any]:
    """A module, its example inputs and its calibration samples."""
    if model.startswith("zoo:"):
        from ethosu_sdk.compile import zoo

        loaded = zoo.load(model.removeprefix("zoo:"))
        return loaded.module, loaded.example_inputs, loaded.calibration
    import compile_models

    module, inputs = getattr(compile_models, model.rpartition(":")[2])()
    return module.eval(), inputs, (inputs,)


def bare(model: str, path: Path) -> Times:
    """What a user's own script does: quantise, lower and write, with nothing of the SDK. The time of the lowering."""
    import torch
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.set_num_threads(1)
    module, inputs, samples = _load(model)
    spec = EthosUCompileSpec(TARGET)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    with torch.no_grad():
        prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), quantizer)
        for sample in samples:
            prepared(*sample)
        program = torch.export.export(convert_pt2e(prepared), inputs)
    start = _now()
    edge = to_edge_transform_and_lower(
        program,
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    lowering = _since(start)
    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    path.write_bytes(edge.to_executorch(config=config).buffer)
    return lowering


def measure(name: str, model: str, repeats: int, before: Path | None) -> None:
    """Compile one model in each way and print."""
    from rich.console import Console
    from rich.table import Table

    times: dict[str, list[Times]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder, program = Path(scratch, "out"), Path(scratch, "bare.pte")
        command = (COMMAND, "compile", model, "--target", TARGET, "-o")
        for _ in range(repeats):
            whole, done = timed(sys.executable, Path(__file__), "--bare", model, program)
            times.setdefault("bare lowering", []).append(Times(**json.loads(done.stdout.splitlines()[-1])))
            times.setdefault("whole bare script", []).append(whole)
            if before is not None:
                whole, _ = timed(*BEFORE, *command[1:], Path(scratch, "before"), path=before)
                times.setdefault("before", []).append(whole)
            whole, done = timed(*command, folder)
            times.setdefault("ethosu-sdk compile", []).append(whole)
        (own_program,) = folder.glob("*.pte")
        same = program.read_bytes() == own_program.read_bytes()
    table = Table("", *times, "ratio to the bare lowering", title=f"{name}, {TARGET}")
    for kind in ("wall_s", "cpu_s"):
        medians = {way: statistics.median(getattr(row, kind) for row in rows) for way, rows in times.items()}
        ratio = medians["ethosu-sdk compile"] / medians["bare lowering"]
        table.add_row(kind, *(f"{seconds:.1f}" for seconds in medians.values()), f"{ratio:.2f}")
    console = Console()
    console.print(table, f"limit of the ratio: {LIMIT}; the programs are {'' if same else 'not '}identical")
    console.print(done.stderr, highlight=False)


def main() -> None:
    """Measure what the command line names."""
    if sys.argv[1:2] == ["--bare"]:
        print(json.dumps(vars(bare(sys.argv[2], Path(sys.argv[3])))))
        return
    parser = argparse.ArgumentParser(
        description="Compile models in several ways and print how long each takes."
    )
    parser.add_argument("--short", action="store_true", help="one layer, once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, metavar="SDK_FOLDER")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    given = parser.parse_args()
    if given.short:
        measure("small", SHORT, 1, given.before)
        return
    for name in given.models or MODELS:
        measure(name, MODELS[name], given.repeats, given.before)


if __name__ == "__main__":
    main()
