"""The kernel manifest and the choice from it."""

from pathlib import Path

import pytest

from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.firmware_build import kernels
from ethosu_sdk.firmware_build.kernels import Kernel

ROWS = """
[softmax]
"aten::_softmax.out" = "softmax_out(self, dim, half_to_float, out)"

[add]
"aten::add.out" = "add_out(self, other, alpha, out)"
"""


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Kernel]:
    path = tmp_path / "kernels.toml"
    path.write_text(ROWS)
    return kernels.manifest(path)


def test_an_operator_is_split_into_name_and_overload(known: dict[str, Kernel]) -> None:
    row = known["aten::_softmax.out"]
    assert (row.name, row.overload, row.function) == ("aten::_softmax", "out", "softmax_out")
    assert row.parameters == ("self", "dim", "half_to_float", "out")
    assert row.source == "softmax.cpp"


def test_each_kernel_is_chosen_once_and_no_other(known: dict[str, Kernel]) -> None:
    assert [row.function for row in kernels.select(["aten::_softmax.out"] * 3, known)] == ["softmax_out"]
    assert kernels.select([], known) == ()


def test_every_missing_operator_is_named(known: dict[str, Kernel]) -> None:
    with pytest.raises(InputError) as caught:
        kernels.select(["aten::convolution.out", "aten::add.out", "aten::bmm.out"], known)
    assert caught.value.message.endswith("aten::bmm.out, aten::convolution.out")
    assert "docs/reference/kernels.md" in caught.value.hint


def test_the_sources_of_kernels_are_listed_with_those_that_they_include(known: dict[str, Kernel]) -> None:
    sources = {
        "kernels/operators/softmax.cpp": b'#include "kernels/operators/fill.hpp"\n',
        "kernels/operators/fill.cpp": b'#include "kernels/operators/fill.hpp"\n#include "base/span.hpp"\n',
    }
    chosen = kernels.select(["aten::_softmax.out"], known)
    assert kernels.source_list(chosen, sources) == "operators/fill.cpp\noperators/softmax.cpp\n"
    assert kernels.source_list([], sources) == ""


@pytest.mark.parametrize(
    "text",
    [
        "kernel = 1",
        "[[add]]\n'aten::add.out' = 'f(out)'\n",
        "not toml",
        "[add]\n'aten::add.out' = 1\n",
        "[add]\n'aten::a\"b' = 'f(out)'\n",
        "[add]\n'aten::add.out' = 'f()'\n",
        "[add]\n'aten::add.out' = 'f'\n",
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(text)
    with pytest.raises(BuildError):
        kernels.manifest(path)
