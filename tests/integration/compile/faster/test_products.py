"""A square is one operation of the NPU, with the values of the model in PyTorch."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.compile.faster.judging import compiled
from tests.integration.compile.forms.models import Form

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

SQUARES = Form("squares", "y = self.l(x); return (y * y) * y", "torch.randn(2, 16)")


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256"])
def test_a_square_is_one_operation(target: str, tmp_path: Path, host_runner: Path) -> None:
    found = compiled(replace(SQUARES, target=target), tmp_path, host_runner)
    (delegate,) = found.output.delegates
    assert [row.vela.operator for row in delegate.operations].count("Mul") == 2
    assert min(found.sqnr_db) > 25
