"""What the Cortex-M backend and its passes do not take: it compiles, and gives what PyTorch gives.

The check of every compilation runs the program and compares it with PyTorch; its record is what these tests read.
"""

from pathlib import Path

import pytest

from tests.integration.cli import sdk_ok
from tests.integration.cortex_m import portable_models
from tests.records import Record, read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]

FILE = Path(portable_models.__file__)
LEAST_DB = 25.0
FEW = (  # the others are thorough
    *(
        "dilated",
        "max_pool_1d_dilation",
        "avg_pool_ceil_padding",
        "up_padding",
        "up_1d_groups",
        "volume_groups",
    ),
    *("hardtanh_default", "clamp_away", "hardswish_dilated", "attention_masked", "computed_weights", "words"),
)
FLOAT = (
    "dilated_1d",
    "avg_pool_ceil",
    "up_dilation",
    "volume",
    "hardswish",
    "hardsigmoid_alone",
    "silu",
    "products",
)
# Operators of the backend that a program must have although others of it are portable.
ON_INT8 = {
    "dilated": ("quantized_conv2d_nhwc",),
    "dilated_depthwise": ("quantized_depthwise_conv2d_nhwc",),
    "dilated_1d": ("quantized_conv2d_nhwc",),
    "volume_groups": ("quantized_conv2d_nhwc",),
    "computed_weights": ("quantized_conv2d_nhwc",),
    "hardtanh_default": ("quantized_conv2d_nhwc",),
    "attention_masked": ("quantized_linear", "quantized_batch_matmul", "softmax"),
    "up_norm": ("quantized_transpose_conv2d_nhwc",),
}
# How far int8 is from floating point by the model itself, not by a kernel.
WORSE_DB = {"attention_layer": 22.0, "lp_pool": 20.0, "threshold": 20.0}


def compiled(name: str, folder: Path, *options: str) -> Record:
    """The record of a compilation for a Cortex-M55; what it executed is what PyTorch computes."""
    command = ("compile", f"{FILE}:{name}", "--target", "cortex-m55")
    outcome = sdk_ok(*command, *options, "-o", "out", "-q", cwd=folder)
    assert "legacy layout" not in outcome.err
    record = read(folder / "out" / f"{FILE.stem}.compile.json")
    assert record["check"]["status"] == "pass"
    return record


def least_db(record: Record, link: str) -> float:
    """The worst output of a link from the float model to the executed program."""
    (found,) = [row for row in record["chain"]["links"] if row["link"] == link]
    return min((row["sqnr_db"] for row in found["outputs"] if "sqnr_db" in row), default=float("inf"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FEW else pytest.mark.thorough)
        for name in portable_models.MODELS
    ],
)
def test_the_rest_of_a_model_stays_on_portable_kernels(name: str, tmp_path: Path) -> None:
    record = compiled(name, tmp_path)
    assert least_db(record, "quantised") >= WORSE_DB.get(name, LEAST_DB)
    called = {row["name"] for row in record["cpu_operators"]}
    assert {f"cortex_m::{operator}.out" for operator in ON_INT8.get(name, ())} <= called
    dialect = record["check"].get("dialect", {"elements": 0, "equal": 0})
    assert dialect["equal"] == dialect["elements"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FLOAT[:3] else pytest.mark.thorough) for name in FLOAT]
)
def test_a_float_model_is_all_portable(name: str, tmp_path: Path) -> None:
    record = compiled(name, tmp_path, "--quantize", "none")
    assert all(row["name"].startswith(("aten::", "dim_order_ops::")) for row in record["cpu_operators"])
    assert least_db(record, "executed") > 100


@pytest.mark.qemu
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("up_1d_groups", "cortex-m55"), id="quantised"),
        pytest.param(("dilated", "cortex-m55", "--quantize", "none"), id="float"),
        pytest.param(("words", "cortex-m85", "--board", "corstone-300"), id="cortex-m85"),
    ],
)
def test_the_firmware_computes_the_same(options: tuple[str, ...], tmp_path: Path) -> None:
    name, target, *more = options
    sdk_ok("run", f"{FILE}:{name}", "--target", target, *more, "-o", "out", "-q", cwd=tmp_path)
    run = read(tmp_path / "out" / "run.json")
    assert run["verdict"]["status"] == "pass"
