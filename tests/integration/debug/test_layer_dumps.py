"""The tensors that `debug` dumps are those of the TOSA reference model, bit for bit.

The reference model is asked for every tensor between the operators of each delegate's TOSA graph, on the inputs that
ExecuTorch's own runtime gives the delegate.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tosa.TosaGraph import TosaGraph

from ethosu_sdk.base import json_text, npz
from ethosu_sdk.compile import check_record, compile_record, fault_finding
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.program import pte
from ethosu_sdk.simulate import host_runtime
from tests.conftest import ZooPte
from tests.integration.debug.networks import MODEL, Seen, debug
from tests.oracles.tosa import TosaModel

Array = NDArray[Any]

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]


def reference_tensors(
    program: Path, names: dict[int, list[str]], runner: Path, model: TosaModel
) -> dict[tuple[int, str], Array]:
    """The tensors `names` of each delegate of `program` for its example inputs, by delegate and name."""
    found: dict[tuple[int, str], Array] = {}

    def execute(call: host_runtime.DelegateCall) -> Sequence[Array]:
        graph = (program.parent / f"delegate{call.index}.tosa").read_bytes()
        block = TosaGraph.GetRootAs(graph, 0).Regions(0).Blocks(0)
        outputs = [block.Outputs(index).decode() for index in range(block.OutputsLength())]
        wanted = [name for name in names.get(call.index, []) if name not in outputs]
        values = model.run(fault_finding.with_outputs(graph, block, [*outputs, *wanted]), call.inputs)
        for name, value in zip([*outputs, *wanted], values, strict=True):
            found[call.index, name] = value.view(np.int8) if value.dtype == np.bool_ else value
        return values[: len(outputs)]

    content = npz.read_npz(program.with_name(f"{program.stem}.io.npz"))
    count = len(pte.read(program).plan("forward").input_tensors())
    host_runtime.run_pte(runner, program, [content[f"input{index}"] for index in range(count)], execute)
    return found


def compare(seen: Seen, program: Path, runner: Path, model: TosaModel) -> tuple[int, int]:
    """How many layers equal the reference model's tensors, and how many there are in all."""
    names: dict[int, list[str]] = {}
    compared = []
    for row in seen.layers:
        if not row.get("reason", "").startswith("a tensor of Vela's own"):
            names.setdefault(row["delegate"], []).append(row["tensor"])
            compared.append(row)
    reference = reference_tensors(program, names, runner, model)
    for row in compared:
        expected, dumped = reference[row["delegate"], row["tensor"]], seen.arrays[row["name"]]
        assert dumped.dtype == expected.dtype, row["tensor"]
        assert dumped.shape == expected.shape == tuple(row["shape"]), row["tensor"]
        differing = int(np.count_nonzero(dumped != expected))
        assert differing == 0, f"{differing} of {dumped.size} elements of {row['tensor']} differ"
    return len(compared), len(seen.layers)


@pytest.mark.parametrize(
    ("name", "target", "least", "velas_own"),
    [
        ("ds_cnn", "ethos-u55-128", 11, 1),
        ("ds_cnn", "ethos-u85-256", 11, 0),
        ("mobilenet_v2", "ethos-u55-128", 64, 0),
        ("resnet8", "ethos-u55-128", 14, 0),
    ],
)
def test_networks_of_the_zoo(
    name: str,
    target: str,
    least: int,
    velas_own: int,
    zoo_pte: ZooPte,
    host_runner: Path,
    tosa: TosaModel,
    tmp_path: Path,
) -> None:
    compiled = zoo_pte(name, target)
    asked = CompileRequest(f"zoo:{name}", compiled.target, compiled.pte.parent)
    record = check_record.check_left_out(compile_record.compile_record(asked, compiled, "0" * 64, 0.0))
    json_text.write_json(compiled.pte.with_name(f"{name}.compile.json"), record)
    seen = debug(compiled.pte, tmp_path)
    equal, count = compare(seen, compiled.pte, host_runner, tosa)
    assert equal >= least
    assert count - equal == velas_own
    assert seen.record["counts"]["gathered"] == count


def test_a_network_with_attention(whole: Seen, host_runner: Path, tosa: TosaModel) -> None:
    equal, count = compare(whole, whole.folder / "net.pte", host_runner, tosa)
    assert equal >= 24
    assert equal / count > 0.75  # the others are Vela's copies and conversions to int32
    parts = [row for row in whole.layers if len(row["operations"]["offsets"]) > 1]
    assert parts, "no tensor was put together from parts"


def test_a_network_with_attention_of_16_bits(tmp_path: Path, host_runner: Path, tosa: TosaModel) -> None:
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    seen = debug("net.py", tmp_path, "--quantize", "int16", "--target", "ethos-u85-256")
    equal, count = compare(seen, tmp_path / "net.pte", host_runner, tosa)
    assert equal / count > 0.8
    assert {row["dtype"] for row in seen.layers} >= {"int16"}
    (against, *_) = seen.record["comparisons"]
    assert against["against"] == "quantised"
    assert "first_break" not in against
