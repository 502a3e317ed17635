"""Whole networks of ExecuTorch's Cortex-M backend: nothing is delegated, every kernel is ours, or Arm's.

The single operators are in cases/cortex_m.py.
"""

import functools
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import KernelCall
from tests.integration.cli import Outcome, sdk
from tests.kernels.interpreter.cortex_m import lower, lower_network
from tests.kernels.interpreter.runner import same_bits
from tests.pte_files import changed

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]


# Arm's runner has older forms of these, and no pad: what is changed in the copy of the program that it gets.
CHANGES = {
    "cortex_m::pad.out": ["a copy, because nothing is padded"],
    "cortex_m::quantized_conv2d.out": ["scratch left out"],
    "cortex_m::quantized_depthwise_conv2d.out": ["scratch left out"],
    "cortex_m::quantized_avg_pool2d.out": ["ceil_mode (False) left out", "scratch left out"],
    "cortex_m::quantized_add.out": ["activation_min (-128) left out", "activation_max (127) left out"],
}

network_of = functools.cache(lower_network)


def run(name: str, program: bytes, runtime: str, folder: Path) -> Outcome:
    """The network `name`, or what became of its `program`, with the inputs of its case."""
    (folder / "network.pte").write_bytes(program)
    numpy.savez(folder / "inputs.npz", input0=network_of(name).inputs[0].transpose(0, 3, 1, 2))
    options = ("--inputs", "inputs.npz", "--runtime", runtime, "-o", "out", "-q")
    return sdk("run", "network.pte", *options, cwd=folder)


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8"])
def test_a_network_equals_the_references_on_both_runtimes(name: str, tmp_path: Path) -> None:
    network = network_of(name)
    called = pte.parse(network.program).plan().called_operators()
    assert {"cortex_m::quantized_conv2d.out", "cortex_m::quantized_linear.out"} <= called.keys()
    outcome = run(name, network.program, "both", tmp_path)
    assert outcome.code == 0, outcome.err
    for file in ("outputs.npz", "outputs-executorch.npz"):
        with numpy.load(tmp_path / "out" / file) as outputs:
            found = [outputs[f"output{i}"] for i in range(len(network.expected))]
        assert all(same_bits(*pair) for pair in zip(found, network.expected, strict=True))
        assert all(numpy.unique(output).size > 1 for output in found)
    assert (tmp_path / "network.pte").read_bytes() == network.program
    record: dict[str, Any] = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    adapted = record["second_opinion"]["runtime"]["adapted"]
    assert {row["name"]: (row["called"], row["calls"], row["changes"]) for row in adapted["operators"]} == {
        row: (row.replace("pad", "maximum"), called[row], changes)
        for row, changes in CHANGES.items()
        if row in called
    }
    assert adapted["program_sha256"] != record["model"]["sha256"]


def test_arms_average_pool_rounds_a_half_away_from_zero(tmp_path: Path) -> None:
    """The firmware has the bits of the reference; Arm's differ at ties alone, and the error says why."""
    import torch

    step = 1 / 64
    corners = [torch.full((1, 8, 16, 16), number * step) for number in (-128, 127)]
    x = torch.randint(-128, 128, (1, 8, 16, 16), generator=torch.Generator().manual_seed(3)) * step
    tensors = [tensor.to(memory_format=torch.channels_last) for tensor in (*corners, x)]
    network = lower(torch.nn.AvgPool2d(2), [(tensor,) for tensor in tensors[:2]], (tensors[2],))
    (tmp_path / "network.pte").write_bytes(network.program)
    numpy.savez(tmp_path / "inputs.npz", input0=x.numpy())
    outcome = sdk(
        "run", "network.pte", "--inputs", "inputs.npz", "--runtime", "both", "-o", "out", cwd=tmp_path
    )
    assert outcome.code == 7
    assert "rounds a half away from zero in cortex_m::quantized_avg_pool2d" in " ".join(outcome.err.split())
    own, arms = (
        numpy.load(tmp_path / "out" / name)["output0"] for name in ("outputs.npz", "outputs-executorch.npz")
    )
    assert same_bits(own, network.expected[0])
    means = x.reshape(1, 8, 8, 2, 8, 2).mean((3, 5)).numpy() / step
    differ = own != arms
    assert differ.sum() > 20
    assert ((means[differ] % 1) == 0.5).all()
    assert (abs(arms[differ]) > abs(own[differ])).all()


def test_what_the_older_form_cannot_express_is_refused(tmp_path: Path) -> None:
    program = network_of("resnet8").program
    plan = pte.parse(program).plan()
    call = next(
        row
        for row in plan.instructions
        if isinstance(row, KernelCall)
        and plan.operators[row.op_index].full_name == "cortex_m::quantized_add.out"
    )
    limited = changed(program, (f"execution_plan[0].values[{call.args[12]}].val.int_val", 100))
    outcome = run("resnet8", bytes(limited), "executorch", tmp_path)
    assert outcome.code == 5
    assert "cannot execute cortex_m::quantized_add.out: activation_max is 100" in outcome.err
    assert not (tmp_path / "out" / "run.json").exists()
