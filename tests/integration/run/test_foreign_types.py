"""Programs and models with tensors of a type that NumPy has no name for are refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.program import pte, pte_schema
from tests import pte_files
from tests.integration.cli import assert_clear, sdk


@pytest.mark.parametrize(
    ("what", "name"),
    [("input", "BFLOAT16"), ("output", "QINT32"), ("input", "FLOAT8E5M2"), ("input", "QUINT4X2")],
)
def test_a_program(what: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pte"
    path.write_bytes(pte_files.golden("softmax"))
    plan = pte.read(path).plan("forward")
    index = (plan.inputs if what == "input" else plan.outputs)[0]
    change = (f"execution_plan[0].values[{index}].val.scalar_type", pte_schema.ENUMS["ScalarType"][name])
    path.write_bytes(pte_files.changed(pte_files.golden("softmax"), change))
    outcome = sdk("run", path, "--simulator", "host", cwd=tmp_path)
    assert outcome.code == 3, outcome.err
    assert f"{what} 0 of the program is {name.lower()}".replace("float8e5m2", "float8_e5m2") in outcome.err
    assert "internal error" not in outcome.err
    assert sdk("inspect", path, cwd=tmp_path).code == 0


@pytest.mark.torch
def test_a_model_with_a_quantised_input(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "model = torch.nn.ReLU()\n"
        "example_inputs = (torch.quantize_per_tensor(torch.ones(1, 4), 0.5, 0, torch.qint8),)\n"
    )
    assert_clear(sdk("compile", "net.py", cwd=tmp_path), 3, "example input 0 is qint8")
