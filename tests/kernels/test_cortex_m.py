"""Whole networks of ExecuTorch's Cortex-M backend: nothing is delegated, every kernel is ours.

The single operators are in cases/cortex_m.py.
"""

from pathlib import Path

import numpy
import pytest

from ethosu_sdk import pte
from tests.integration.cli import sdk
from tests.kernels.interpreter.cortex_m import lower_network
from tests.kernels.interpreter.runner import same_bits

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8"])
def test_a_network_equals_the_references_on_cortex_m55(name: str, tmp_path: Path) -> None:
    network = lower_network(name)
    called = set(pte.parse(network.program).plan().called_operators())
    assert {"cortex_m::quantized_conv2d.out", "cortex_m::quantized_linear.out"} <= called
    (tmp_path / "network.pte").write_bytes(network.program)
    numpy.savez(tmp_path / "inputs.npz", input0=network.inputs[0].transpose(0, 3, 1, 2))
    outcome = sdk("run", "network.pte", "--inputs", "inputs.npz", "-o", "out", "-q", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    with numpy.load(tmp_path / "out" / "outputs.npz") as outputs:
        found = [outputs[f"output{i}"] for i in range(len(network.expected))]
    assert all(same_bits(*pair) for pair in zip(found, network.expected, strict=True))
    assert all(numpy.unique(output).size > 1 for output in found)
