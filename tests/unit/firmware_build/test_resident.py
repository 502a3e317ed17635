"""What the resident firmware has room for, and what it must refuse before a run."""

from dataclasses import replace

import pytest

from ethosu_sdk import boards, pte
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import resident
from tests.places import GOLDEN_PTE

SCRATCH = 64  # of add_u55.pte, in Shared_Sram
BOARD = boards.board("corstone-300")


def check(
    monkeypatch: pytest.MonkeyPatch, fast_bytes: int, bulk_bytes: int, *, allow_spill: bool = False
) -> tuple[str, ...]:
    """The fit of add_u55.pte on a Corstone-300 with other memories."""
    sizes = {BOARD.fast.name: fast_bytes, BOARD.bulk.name: bulk_bytes}
    memories = tuple(replace(row, size_bytes=sizes.get(row.name, row.size_bytes)) for row in BOARD.memories)
    named = {row.name: row for row in memories}
    other = replace(BOARD, memories=memories, fast=named[BOARD.fast.name], bulk=named[BOARD.bulk.name])
    monkeypatch.setattr(boards, "board", lambda _name: other)
    program = pte.read(GOLDEN_PTE / "add_u55.pte")
    return resident.check_fit(program, "forward", BOARD.name, allow_spill=allow_spill)


def test_the_largest_memory_is_shared_out_and_not_more() -> None:
    pools = resident._pool_bytes(BOARD)
    assert pools["program"] == 64 << 20
    assert sum(pools.values()) < BOARD.bulk.size_bytes


@pytest.mark.parametrize("name", ["add_u55", "conv_u65_int8", "softmax"])
def test_small_programs_fit(name: str) -> None:
    program = pte.read(GOLDEN_PTE / f"{name}.pte")
    assert resident.check_fit(program, "forward", BOARD.name, allow_spill=False) == ()


def test_a_model_that_its_mode_has_in_sram_is_noted() -> None:
    program = pte.read(GOLDEN_PTE / "add_u85_segment.pte")
    (note,) = resident.check_fit(program, "forward", BOARD.name, allow_spill=False)
    assert "Sram_Only has the model in SRAM" in note


def test_scratch_leaves_the_fast_memory_only_with_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, SCRATCH, 1 << 28) == ()
    with pytest.raises(BuildError, match="scratch does not fit SRAM") as caught:
        check(monkeypatch, SCRATCH - 16, 1 << 28)
    assert "--allow-spill" in caught.value.hint
    (note,) = check(monkeypatch, SCRATCH - 16, 1 << 28, allow_spill=True)
    assert "it lies in DDR" in note


def test_a_program_larger_than_its_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    size = (GOLDEN_PTE / "add_u55.pte").stat().st_size
    monkeypatch.setattr(resident, "_SHARES", dict.fromkeys(resident._SHARES, 1))
    room = -(-size // 16) * 16
    monkeypatch.setattr(resident, "_PARTS", BOARD.bulk.size_bytes // room)
    assert check(monkeypatch, 1 << 21, BOARD.bulk.size_bytes) == ()
    monkeypatch.setattr(resident, "_PARTS", BOARD.bulk.size_bytes // (size - 1) + 1)
    with pytest.raises(BuildError, match=f"program of {size:,} bytes does not fit") as caught:
        check(monkeypatch, 1 << 21, BOARD.bulk.size_bytes)
    assert "without --resident" in caught.value.hint
