"""The board table against the simulators and the targets."""

from __future__ import annotations

import itertools

import pytest

from ethosu_sdk import boards
from ethosu_sdk.errors import UsageError
from ethosu_sdk.simulators.fvp.models import models
from ethosu_sdk.simulators.qemu.memory_map import board_map
from ethosu_sdk.targets import Family, families


@pytest.mark.parametrize("name", boards.BOARDS)
def test_no_two_memories_overlap(name: str) -> None:
    rows = sorted(boards.board(name).memories, key=lambda row: row.origin)
    for low, high in itertools.pairwise(rows):
        assert low.origin + low.size_bytes <= high.origin
        assert not low.holds(high.origin)


def test_an_unknown_board_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="corstone-3000") as caught:
        boards.board("corstone-3000")
    assert "did you mean 'corstone-300'?" in caught.value.hint


def test_every_simulator_has_the_boards_and_npus_that_the_table_gives_it() -> None:
    of_fvp = {(model.board, model.npu) for model in models().values()}
    assert {
        (row.name, npu) for row in boards.boards().values() for npu in row.simulators.get("fvp", ())
    } == of_fvp
    on_qemu = [row for row in boards.boards().values() if "qemu" in row.simulators]
    assert {row.name for row in on_qemu} == {"corstone-300", "corstone-320"}
    assert {npu for row in on_qemu for npu in row.simulators["qemu"]} == set(families())
    for row in on_qemu:
        for memory in row.memories:
            found = board_map(row.name).find_bank(memory.origin)
            assert found is not None
            assert found[1] + memory.size_bytes <= found[0].size_bytes


def test_the_npu_reaches_the_memories_that_hold_its_buffers() -> None:
    """Tightly coupled memories are the processor's own."""
    for row in boards.boards().values():
        assert "TCM" not in row.fast.name + row.bulk.name


@pytest.mark.parametrize("family", families().values(), ids=lambda family: family.name)
def test_the_board_of_a_family_has_its_npu(family: Family) -> None:
    assert family.name in boards.board(family.board).npus
