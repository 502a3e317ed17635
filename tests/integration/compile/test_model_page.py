"""The example of docs/guide/model-files.md is a model that compiles."""

import re
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.places import ROOT
from tests.records import printed

pytestmark = pytest.mark.torch

PAGE = ROOT / "docs" / "guide" / "model-files.md"


def test_the_smallest_model_file_compiles(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^## The smallest model file\n\n```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "my_model.py").write_text(found[1], encoding="utf-8")
    record = printed(sdk("compile", "my_model.py", "--target", "ethos-u55-128", "--json", cwd=tmp_path))
    assert record["calibration"]["samples"] == 8
    assert len(record["delegates"]) == 1
