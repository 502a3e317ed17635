"""What our default gains over ExecuTorch's own flow, network by network, on the same board, kernels and NPU model.

    against_stock.py [--system BOARD] [--out FOLDER] [--page FILE.md] [MODEL …]

MODEL is what `ethosu-sdk compile` takes; without, all of the zoo that have one method and no state. Stock is
ExecuTorch as its documentation has it, with nothing of ours in the way: EthosUQuantizer with its symmetric
configuration, calibrated on the model's samples, EthosUPartitioner, Vela. Both programs run on QEMU with our firmware
and are priced for BOARD. SQNR is the distance of the outputs from the untouched float model, on the example inputs.
FOLDER keeps what is done: an interrupted run goes on there.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk.base import board_profiles
from ethosu_sdk.program.output_comparison import Comparison

COMMAND = (sys.executable, "-c", "from ethosu_sdk.cli import main; main()")
BOARD = "alif-e8-hp"
ZOO = (
    *("digits_cnn", "ds_cnn", "mobilenet_v2", "resnet8", "mobilenet_v1_025", "deep_autoencoder"),
    *("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "crepe_tiny"),
)
LIMIT_S = 1800
_AT_THE_BORDER = ("quantize_per", "_clone_dim_order")  # conversions, and the order of images in them
LEAST_DB = 3.0  # below that, a program's outputs have nothing to do with the model's
Json = dict[str, Any]


def stock(model: str, target: Json, folder: Path) -> None:
    """Compile `model` with ExecuTorch alone; leave ``stock.pte``, ``inputs.npz`` and the float outputs in `folder`.
    The only thing of ours is what loads the model."""
    import torch
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from ethosu_sdk.compile.front_ends.loading import load_model
    from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec

    loaded = load_model(parse_model_spec(model))
    module, inputs = loaded.module.eval(), loaded.example_inputs
    with torch.no_grad():
        outputs = copy.deepcopy(module)(*(item.clone() for item in inputs))
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    for name, kind, rows in (("inputs", "input", inputs), ("float", "output", outputs)):
        np.savez(
            folder / f"{name}.npz",
            **{f"{kind}{index}": row.detach().numpy() for index, row in enumerate(rows)},
        )
    spec = EthosUCompileSpec(
        f"{target['npu']}-{target['macs']}",
        system_config=target["system_config"],
        memory_mode=target["memory_mode"],
        config_ini=str(folder / "vela.ini"),
    )
    program = torch.export.export(module, inputs, strict=True)
    if loaded.quantize != "none":
        quantizer = EthosUQuantizer(spec)
        quantizer.set_global(get_symmetric_quantization_config())
        prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
        for sample in loaded.calibration or (inputs,):
            prepared(*sample)
        program = torch.export.export(convert_pt2e(prepared), inputs, strict=True)
    edge = to_edge_transform_and_lower(
        program,
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    manager = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    (folder / "stock.pte").write_bytes(manager.buffer)


def _run(argv: Sequence[str | Path]) -> str:
    """What a child process printed; RuntimeError with its last line that says something if it fails."""
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        named = [line for line in lines if "rror" in line and not line.startswith("hint:")]
        raise RuntimeError((named or lines or ["no message"])[-1][:200])
    return done.stdout


def figures(pte: Path, folder: Path, board: str) -> Json:
    """Time, memory and distance from the float model of a program; RuntimeError when it does not run."""
    out = folder / f"{pte.stem}-run"
    more = ("--inputs", folder / "inputs.npz", "--system", board, "--allow-spill", "-o", out, "-q")
    _run((*COMMAND, "profile", pte, *more))
    profile, build = (json.loads((out / f"{name}.json").read_text()) for name in ("profile", "build"))
    pools = {row["name"]: row["used_bytes"] for row in build["memory"]["pools"]}
    with np.load(folder / "float.npz") as expected, np.load(out / "outputs.npz") as found:
        sqnr = min(_distance(expected[name], found[name]).sqnr_db for name in expected.files)
    cpu = [row["name"] for row in profile["operations"] if row["runs_on"] == "CPU"]
    kept = [name for name in cpu if not any(word in name for word in _AT_THE_BORDER)]
    return {
        "ms": profile["time"]["total"]["duration_s"] * 1e3,
        "sram": sum(pools.get(name, 0) for name in ("scratch", "scratch_fast", "planned")),
        "flash": pte.stat().st_size,
        "sqnr_db": None if math.isinf(sqnr) else sqnr,
        "cpu": len(kept),
    }


def _distance(expected: Any, found: Any) -> Comparison:
    result = Comparison()
    result.add(0, expected, found)
    return result


def compared(model: str, board: str, folder: Path) -> Json:
    """The figures of both programs of `model`, ``{"error": …}`` in place of one that there is not."""
    name = model.removeprefix("zoo:").rpartition(":")[2] or Path(model).stem
    result: Json = {"model": name}
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = Path(temporary)
        try:
            _run((*COMMAND, "compile", model, "--system", board, "-o", work / "ours", "-q"))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return {**result, "ours": {"error": str(error)}}
        (path,) = (work / "ours").glob("*.compile.json")
        record = json.loads(path.read_text())
        result["rewrites"] = [row["name"] for row in record.get("rewrites", [])]
        (work / "vela.ini").write_text(board_profiles.find_profile(board).vela_ini(), encoding="utf-8")
        (pte,) = (work / "ours").glob("*.pte")
        for kind in ("stock", "ours"):
            try:
                if kind == "stock":
                    asked = ("--stock", json.dumps(record["target"]), "--out", work, model)
                    _run((sys.executable, "-W", "ignore", __file__, *asked))
                result[kind] = figures(work / "stock.pte" if kind == "stock" else pte, work, board)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                result[kind] = {"error": str(error)}
    return result


def _problem(part: Json) -> str:
    """Why figures do not count; empty where they do."""
    if "error" in part:
        return str(part["error"])
    db = part["sqnr_db"]
    return f"wrong outputs: {db:.0f} dB" if db is not None and db < LEAST_DB else ""


def table(rows: Sequence[Json]) -> str:
    """The networks, both beside each other, and the geometric mean of the times' ratios."""
    lines = [
        "| network | time, ms: stock | ours | ratio | SRAM, kB | flash, kB | SQNR, dB | on the CPU |",
        "| --- | --: | --: | --: | :-: | :-: | :-: | :-: |",
    ]
    ratios = []
    for row in rows:
        before, after = row.get("stock", {"error": "not tried"}), row["ours"]
        if problem := _problem(after) or _problem(before):
            who = "ours" if _problem(after) else "stock"
            ms = f"{after['ms']:.3f}" if who == "stock" else "—"
            lines.append(f"| `{row['model']}` | {who}: {problem} | {ms} | | | | | |")
            continue
        ratios.append(after["ms"] / before["ms"])
        both = (f"{before[key] / 1e3:.0f} → {after[key] / 1e3:.0f}" for key in ("sram", "flash"))
        quality = " → ".join(
            "=" if part["sqnr_db"] is None else f"{part['sqnr_db']:.1f}" for part in (before, after)
        )
        lines.append(
            f"| `{row['model']}` | {before['ms']:.3f} | {after['ms']:.3f} | {ratios[-1]:.2f} | {' | '.join(both)} | "
            f"{quality} | {before['cpu']} → {after['cpu']} |"
        )
    if ratios:
        lines += ["", f"Geometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}."]
    return "\n".join(lines) + "\n"


def page(rows: Sequence[Json], board: str) -> str:
    """docs/reference/against-stock.md."""
    return f"""# Beside ExecuTorch's own flow

<!-- Generated by benchmarks/against_stock.py --page: do not edit. -->

Each network is compiled twice for the board `{board}`: by `ethosu-sdk compile` with its defaults, and by ExecuTorch's
own flow (EthosUQuantizer, EthosUPartitioner, Vela) with nothing of ours in the way. Both programs run on QEMU with
the same firmware and NPU model. Times are modelled ([time.md](../guide/time.md)). SRAM is the arena with what
ExecuTorch plans, flash the `.pte`. SQNR is the distance from the float model on the example inputs. The last column
counts operators on the CPU, conversions at the border aside. An arrow leads from stock to ours.

{table(rows)}"""


def main() -> int:
    """Compare the models of the command line; the exit code is 1 if ours does not compile or run one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--system", default=BOARD)
    parser.add_argument("--out", type=Path, default=Path("build/against-stock"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--short", action="store_true", help="the smallest network of the zoo alone")
    parser.add_argument("--stock", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stock:
        stock(options.models[0], json.loads(options.stock), options.out)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    models = options.models or [f"zoo:{name}" for name in (ZOO[:1] if options.short else ZOO)]
    rows = []
    for model in models:
        kept = options.out / f"{model.replace('/', '_').replace(':', '_')}.json"
        if not kept.is_file():
            kept.write_text(json.dumps(compared(model, options.system, options.out), indent=2))
        rows.append(json.loads(kept.read_text()))
        problem = _problem(rows[-1]["ours"]) or _problem(rows[-1].get("stock", {}))
        print(f"{model}: {problem or 'done'}", file=sys.stderr)
    print(table(rows))
    if options.page is not None:
        options.page.write_text(page(rows, options.system), encoding="utf-8")
    return 1 if any(_problem(row["ours"]) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
