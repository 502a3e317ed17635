"""The kernel manifest and the choice from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import kernels
from ethosu_sdk.firmware_build.kernels import Kernel

ROWS = """
[[kernel]]
operator = "aten::_softmax.out"
function = "softmax_out"
source = "softmax.cpp"

[[kernel]]
operator = "aten::add.out"
function = "add_out"
source = "add.cpp"
"""


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Kernel]:
    path = tmp_path / "kernels.toml"
    path.write_text(ROWS)
    return kernels.manifest(path)


def test_an_operator_is_split_into_name_and_overload(known: dict[str, Kernel]) -> None:
    row = known["aten::_softmax.out"]
    assert (row.name, row.overload, row.function) == ("aten::_softmax", "out", "softmax_out")


def test_each_kernel_is_chosen_once_and_no_other(known: dict[str, Kernel]) -> None:
    assert [row.function for row in kernels.select(["aten::_softmax.out"] * 3, known)] == ["softmax_out"]
    assert kernels.select([], known) == ()


def test_every_missing_operator_is_named(known: dict[str, Kernel]) -> None:
    with pytest.raises(BuildError) as caught:
        kernels.select(["aten::convolution.out", "aten::add.out", "aten::bmm.out"], known)
    assert caught.value.message.endswith("aten::bmm.out, aten::convolution.out")
    assert "docs/kernels.md" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "kernel = 1",
        "[[kernel]]\noperator = 'aten::add.out'\n",
        "not toml",
        "[[kernel]]\noperator = 'aten::a\"b'\nfunction = 'f'\nsource = 's'\n",
        "[[kernel]]\noperator = 'aten::add.out'\nfunction = 'f()'\nsource = 's'\n",
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(text)
    with pytest.raises(BuildError):
        kernels.manifest(path)
