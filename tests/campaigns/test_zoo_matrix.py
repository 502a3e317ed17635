"""A sample of the matrix of docs/reference/zoo-matrix.md, faults that it must notice, and the page itself."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from campaigns.grid import PAGES, rows_of
from campaigns.zoo_matrix import __main__ as program, page, worker
from campaigns.zoo_matrix.cells import (
    DELEGATES,
    KINDS,
    MEMORY,
    MODELS,
    TARGETS,
    cells,
    memory_modes,
    named,
    quantisations,
)
from campaigns.zoo_matrix.checks import (
    DIFFERS,
    EXACT,
    FAILED,
    REFUSED,
    STEPS,
    Oracles,
    Outcome,
    check_delegates,
    check_firmware,
    said,
)
from ethosu_sdk import npu
from ethosu_sdk.base import npz
from tests.conftest import ZooPte
from tests.integration.cli import assert_clear, sdk
from tests.oracles.tosa import TosaModel

PAGE = PAGES / "zoo-matrix.md"
STREAM = "memory-vad-ethos-u65-256-int8-Dedicated_Sram_256KB"
# Cells that no other test has, and how many delegates they have.
SAMPLE = {
    "delegates-mtcnn_rnet-ethos-u65-256-int16-Dedicated_Sram_384KB": 1,
    "delegates-mtcnn_pnet-ethos-u85-256-int16-Sram_Only": 1,
    "memory-ds_cnn-ethos-u65-256-int8-Dedicated_Sram_512KB": 2,
    STREAM: 1,
}
Array = NDArray[Any]


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_sample_of_the_cells(tmp_path: Path) -> None:
    """In one test: each of pytest-xdist's processes would import the compilers for itself."""
    program.run_workers(tmp_path, [named(name) for name in SAMPLE], jobs=1)
    found = program.stored(tmp_path)
    assert {str(cell): (row.verdict, row.delegates, row.detail) for cell, row in found.items()} == {
        name: (EXACT, delegates, "") for name, delegates in SAMPLE.items()
    }
    assert all(row.elements >= STEPS for row in found.values())
    check_state_matters(worker.program_folder(tmp_path, named(STREAM)))


def check_state_matters(folder: Path) -> None:
    """The last step alone, without the state of those before it, is not what the oracle gave for it."""
    for name in ("inputs", "expected"):
        arrays = npz.read_npz(folder / "run" / f"{name}.npz")
        assert {len(rows) for rows in arrays.values()} == {STEPS}
        npz.write_npz(folder / f"{name}.npz", {key: rows[-1] for key, rows in arrays.items()})
    words = ("--inputs", "inputs.npz", "--expect", "expected.npz", "--simulator", "host", "-o", "alone")
    outcome = sdk("run", "vad.pte", *words, cwd=folder)
    assert_clear(outcome, 7, "the outputs are not as expected")


@pytest.mark.torch
def test_a_wrong_npu_model_is_noticed(zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel) -> None:
    def off_by_one(loaded: npu.Program, inputs: list[Array]) -> npu.RunResult:
        result = npu.run(loaded, inputs)
        wrong = result.outputs[0].copy()
        wrong.reshape(-1)[0] ^= 1
        return replace(result, outputs=[wrong])

    found = check_delegates(zoo_pte("add"), Oracles(host_runner, tosa), off_by_one)
    assert (found.verdict, found.differing, found.elements) == (DIFFERS, 7, 35)


class OffByOne(TosaModel):
    """A reference model that is wrong: what it is compared with must be called different."""

    def __init__(self, model: TosaModel) -> None:
        self._model = model

    def run(self, tosa: bytes, inputs: Sequence[Array]) -> list[Array]:
        """The right outputs, with one bit of each flipped."""
        outputs = [output.copy() for output in self._model.run(tosa, inputs)]
        for output in outputs:
            output.reshape(-1)[-1] ^= 1
        return outputs


@pytest.mark.torch
@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_firmware_that_gives_something_else_is_noticed(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel, tmp_path: Path
) -> None:
    found = check_firmware(zoo_pte("add"), tmp_path, Oracles(host_runner, OffByOne(tosa)))
    assert found.verdict == DIFFERS
    assert found.detail.startswith("qemu: the outputs are not as expected")


def test_the_page_has_every_cell_and_none_is_wrong() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = rows_of(text, ("model", "quantised", *TARGETS))
    names = [(row[0], quantize) for row in rows for quantize in row[1].split(", ")]
    assert sorted(names) == sorted((f"`{name}`", q) for name in MODELS for q in quantisations(name))
    texts = [cell for row in rows for cell in row[2:]]
    for target in TARGETS:
        found = rows_of(text.split(f"### {target}, ")[1], ("model", "memory modes", "outcome"))
        modes = memory_modes(target)
        names = [
            (row[0], mode) for row in found for mode in (modes if row[1] == "all" else row[1].split(", "))
        ]
        assert sorted(names) == sorted((f"`{name}`", mode) for name in MODELS for mode in modes)
        texts += [row[2] for row in found]
    for cell in texts:
        assert re.fullmatch(
            r"(exact( when spilled)?, (\d|no) delegates?|no delegate|refused)( \[\d+\])*", cell
        ), cell
        assert ("refused" in cell or "spilled" in cell) <= ("[" in cell), "a refusal has a reason"
        assert all(f"\n- {mark} " in text for mark in re.findall(r"\[\d+\]", cell))


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (Outcome(DIFFERS, delegates=1, elements=50, differing=3), "**differs** 3 of 50"),
        (Outcome(FAILED, "qemu: it hangs"), "**failed** [1]"),
    ],
)
def test_what_is_wrong_shows_on_the_page_and_in_the_exit_code(outcome: Outcome, shown: str) -> None:
    good = {cell: Outcome(EXACT, delegates=1, elements=50) for kind in KINDS for cell in cells(kind)}
    assert page.sound(good.values())
    assert "**" not in page.page(good)
    wrong = {**good, cells(DELEGATES)[5]: outcome, cells(MEMORY)[3]: Outcome(REFUSED, "build: too big")}
    text = page.page(wrong)
    assert text.count(shown) == 1
    assert "**1 wrong**" in text
    assert text.count("- [1] Build: too big.") == 1
    assert not page.sound(wrong.values())
    assert not page.sound([Outcome(REFUSED)]), "refused without a reason"
    del wrong[cells(DELEGATES)[6]]
    with pytest.raises(KeyError):
        page.page(wrong)


def test_the_error_is_found_among_what_a_command_prints() -> None:
    printed = "warning: x\nerror: too big:\n  a   needs 5\nhint: choose y\n"
    assert said(printed) == "too big: a needs 5. Hint: choose y"
    assert said("odd\nend") == "odd end"


def test_the_cells_are_those_that_are_asked_for() -> None:
    assert len(cells(DELEGATES)) == len(TARGETS) * (2 * len(MODELS) + 2)
    assert len(cells(MEMORY)) == len(MODELS) * (2 + 6 + 6)
    assert {np.dtype(row.quantize).itemsize for row in cells(DELEGATES) if row.quantize != "none"} == {1, 2}
