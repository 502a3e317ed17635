"""Operators of TFLite on the NPU model against TFLite's reference kernels, for one or more Velas.

    python -m tests.conformance.tflite_campaign RESULTS [--vela VERSION=PYTHON …] [--seeds 0:40] [--operators NAME,…]

Adds a line of JSON to RESULTS for each model and NPU: what came out (see OUTCOMES).
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ethosu_sdk.base.errors import SdkError
from tests.conformance import tflite_comparison as comparison
from tests.conformance.tflite_expected import Expected
from tests.conformance.tflite_operators import OPERATORS, Case, make

#: One NPU of each family for each seed, in turn.
NPUS = {
    "u55": ("ethos-u55-128", "ethos-u55-32", "ethos-u55-256", "ethos-u55-64"),
    "u65": ("ethos-u65-256", "ethos-u65-512"),
    "u85": ("ethos-u85-256", "ethos-u85-128", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"),
}
OUTCOMES = {
    "equal": "equals LiteRT's reference kernels",
    "micro": "LiteRT and TensorFlow Lite Micro differ; equals the latter",
    "named": "differs by a named rounding",
    "compiler": "Vela's stream is wrong in a known way",
    "different": "differs",
    "refused": "the model refuses the stream",
    "cpu": "Vela leaves it to the CPU, or does not compile it",
    "no reference": "no reference kernel runs it",
}


def outcome(case: Case, wanted: Expected, made: Any, npu: str, vela: str) -> tuple[str, str]:
    """What the model gave for `case`, and a detail."""
    if made is None:
        return "cpu", ""
    try:
        got = comparison.modelled(made, case.named_inputs)
    except SdkError as error:
        return "refused", str(error)
    if got is None:
        return "cpu", ""
    return wanted.judge(got, npu, vela)


def run(
    vela: comparison.Vela, release: str, operator: str, seeds: range, folder: Path
) -> Iterator[dict[str, Any]]:
    """The results of `operator` with these seeds."""
    for seed in seeds:
        case = make(operator, seed)
        path = case.model.write(folder / f"{operator}_{seed}.tflite")
        wanted = Expected(case, path.read_bytes())
        for family, npus in NPUS.items():
            npu = npus[seed % len(npus)]
            if family == "u85" and release < "4":
                continue
            row = {"vela": release, "operator": operator, "seed": seed, "npu": npu, "types": case.types}
            made, _ = vela.compile(path, npu, folder)
            found, detail = outcome(case, wanted, made, npu, release)
            yield {**row, "outcome": found, "detail": detail}
        path.unlink()


def main(arguments: list[str]) -> int:
    """0 when nothing is different or refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--vela", action="append", metavar="VERSION=PYTHON")
    parser.add_argument("--seeds", default="0:40")
    parser.add_argument("--operators", default=",".join(OPERATORS))
    options = parser.parse_args(arguments)
    first, last = map(int, options.seeds.split(":"))
    counts: Counter[str] = Counter()
    for chosen in options.vela or [f"{version('ethos-u-vela')}={sys.executable}"]:
        release, python = chosen.split("=", 1)
        with (
            comparison.Vela(python) as vela,
            options.results.open("a") as out,
            tempfile.TemporaryDirectory() as folder,
        ):
            for operator in options.operators.split(","):
                here: Counter[str] = Counter()
                for row in run(vela, release, operator, range(first, last), Path(folder)):
                    print(json.dumps(row), file=out, flush=True)
                    here[row["outcome"]] += 1
                    if row["outcome"] in ("different", "refused"):
                        print(row)
                counts += here
                print(release, operator, dict(here), flush=True)
    print(dict(counts))
    return 1 if counts["different"] or counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
