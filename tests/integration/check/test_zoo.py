"""No false alarm: models of the zoo, compiled for a board, have no fault there."""

from pathlib import Path

import pytest

from ethosu_sdk.analysis.check_command import check_program
from ethosu_sdk.analysis.options import CheckOptions
from ethosu_sdk.base import board_profiles
from tests.integration.cli import sdk_ok

_MODELS = ("digits_cnn", "ds_cnn", "mobilenet_v1_025", "vad", "resnet8", "streaming_kws")
_ROWS = [
    *(pytest.param("ds_cnn", name, marks=pytest.mark.thorough) for name in board_profiles.profile_names()),
    *(
        pytest.param(model, board, marks=pytest.mark.thorough)
        for board in ("grove-vision-ai-v2", "psoc-edge-e84", "numaker-m55m1", "alif-e8-hp-u85", "imx93")
        for model in _MODELS
        if model != "ds_cnn"
    ),
    pytest.param("add", "grove-vision-ai-v2", marks=pytest.mark.full),
]


@pytest.mark.torch
@pytest.mark.parametrize(("model", "board"), _ROWS)
def test_a_model_for_a_board_has_no_fault_there(model: str, board: str, tmp_path: Path) -> None:
    sdk_ok("compile", f"zoo:{model}", "--system", board, "--no-check", "-o", "made", cwd=tmp_path)
    found = check_program(tmp_path / "made" / f"{model}.pte", board, CheckOptions())
    assert [row.detail for row in found.checks if row.status == "fail"] == []
    assert any(row.name == "vela" and row.status == "pass" for row in found.checks)
