"""Memory placement and its arithmetic, against sums worked out by hand."""

from dataclasses import replace

import pytest

from ethosu_sdk import boards
from ethosu_sdk.errors import BuildError
from ethosu_sdk.evidence import input_image
from ethosu_sdk.firmware_build import layout
from ethosu_sdk.firmware_build.layout import DoesNotFitError, Layout, Requirements

BOARD = boards.board("corstone-300")
MIB = 1 << 20
SMALL = Requirements(
    model_bytes=9000,
    memory_mode="Shared_Sram",
    scratch_bytes=1280,
    planned_bytes=(400, 33),
    method_pool_bytes=4096,
    input_bytes=(256, 10),
)


def memory_of(result: Layout, name: str) -> str:
    return next(row.memory.name for row in result.placements if row.name == name)


def test_shared_sram_puts_the_scratch_beside_the_npu_and_the_model_in_ddr() -> None:
    result = layout.plan(SMALL, BOARD)
    assert memory_of(result, "SCRATCH") == "SRAM"
    assert memory_of(result, "MODEL") == "DDR"
    assert memory_of(result, "PLANNED") == "DDR"
    assert memory_of(result, "METHOD_POOL") == "DTCM"
    assert result.size_of("PLANNED") == 400 + 48
    assert result.size_of("MODEL") == 9000
    assert result.size_of("FAST_SCRATCH") == 0
    assert result.notes == ()


FULL_SRAM = replace(SMALL, memory_mode="Sram_Only", scratch_bytes=MIB, model_bytes=MIB)


def test_sram_only_puts_both_into_sram_and_nowhere_else() -> None:
    result = layout.plan(FULL_SRAM, BOARD)
    assert memory_of(result, "MODEL") == memory_of(result, "SCRATCH") == "SRAM"
    assert result.end_in(BOARD.fast) == 2 * MIB
    assert result.notes == ()
    with pytest.raises(DoesNotFitError) as caught:
        layout.plan(replace(FULL_SRAM, model_bytes=MIB + 1), BOARD)
    assert caught.value.message == (
        "the model does not fit SRAM of corstone-300 in memory mode Sram_Only: model 1,048,577 + scratch 1,048,576 "
        "+ alignment 15 = 2,097,168 bytes, but it has 2,097,152 (16 too many)"
    )


def test_spilling_moves_no_more_than_it_must_and_says_so() -> None:
    """The model gives way first: it is read alone, the scratch is written as well."""
    assert layout.plan(FULL_SRAM, BOARD, allow_spill=True) == layout.plan(FULL_SRAM, BOARD)
    one_moves = layout.plan(replace(FULL_SRAM, model_bytes=MIB + 1), BOARD, allow_spill=True)
    assert (memory_of(one_moves, "MODEL"), memory_of(one_moves, "SCRATCH")) == ("DDR", "SRAM")
    assert len(one_moves.notes) == 1
    assert "the model of 1,048,577 bytes in SRAM" in one_moves.notes[0]
    assert "not those of Sram_Only" in one_moves.notes[0]
    both_move = layout.plan(replace(FULL_SRAM, scratch_bytes=2 * MIB + 1), BOARD, allow_spill=True)
    assert (memory_of(both_move, "MODEL"), memory_of(both_move, "SCRATCH")) == ("DDR", "DDR")
    assert len(both_move.notes) == 2


def test_shared_sram_refuses_a_scratch_larger_than_sram() -> None:
    needs = replace(SMALL, scratch_bytes=2 * MIB + 1)
    with pytest.raises(
        DoesNotFitError, match=r"the scratch .* 2,097,168 bytes, but it has 2,097,152 \(16 too many"
    ):
        layout.plan(needs, BOARD)
    assert memory_of(layout.plan(needs, BOARD, allow_spill=True), "SCRATCH") == "DDR"


def test_an_unknown_memory_mode_is_not_guessed() -> None:
    with pytest.raises(BuildError, match="memory mode 'Shared_Sram_2'") as caught:
        layout.plan(replace(SMALL, memory_mode="Shared_Sram_2"), BOARD)
    assert "did you mean 'Shared_Sram'?" in caught.value.hint


@pytest.mark.parametrize(
    ("mode", "fast_bytes"),
    [
        ("Dedicated_Sram_256KB", 262144),
        ("Dedicated_Sram_384KB", 393216),
        ("Dedicated_Sram_512KB", 524288),
        ("Dedicated_Sram", 2 * MIB),
    ],
)
def test_dedicated_sram_has_its_fast_scratch_there(mode: str, fast_bytes: int) -> None:
    result = layout.plan(replace(SMALL, memory_mode=mode), BOARD)
    assert memory_of(result, "SCRATCH") == "DDR"
    assert memory_of(result, "FAST_SCRATCH") == "SRAM"
    assert result.size_of("FAST_SCRATCH") == fast_bytes


@pytest.mark.parametrize(("known", "pool"), [(0, 0), (1, 16), (11_360, 11_360), (2 * MIB, 2 * MIB)])
def test_a_fast_scratch_of_known_size_gets_no_more(known: int, pool: int) -> None:
    needs = replace(SMALL, memory_mode="Dedicated_Sram_384KB", fast_scratch_bytes=known)
    result = layout.plan(needs, BOARD)
    assert result.size_of("FAST_SCRATCH") == pool
    (row,) = (row for row in result.placements if row.name == "FAST_SCRATCH")
    assert (row.used_bytes, row.memory.name) == (known, "SRAM")


def test_a_fast_scratch_larger_than_sram_is_refused() -> None:
    needs = replace(SMALL, memory_mode="Dedicated_Sram", fast_scratch_bytes=2 * MIB + 1)
    with pytest.raises(DoesNotFitError, match="fast_scratch 2,097,168"):
        layout.plan(needs, BOARD, allow_spill=True)


def test_a_large_method_pool_leaves_the_memory_near_the_processor() -> None:
    assert memory_of(layout.plan(replace(SMALL, method_pool_bytes=300_000), BOARD), "METHOD_POOL") == "DDR"


@pytest.mark.parametrize("inputs", [(), (256,), (256, 10), (1, 1, 1)])
@pytest.mark.parametrize("inferences", [1, 2, 65])
def test_the_input_image_is_as_large_as_the_encoder_makes_it(
    inputs: tuple[int, ...], inferences: int
) -> None:
    image = input_image.encode([[bytes(size) for size in inputs]] * inferences, [[130, 135]])
    assert layout.input_image_bytes(inputs, inferences) == len(image)


def test_the_input_image_holds_64_inferences_by_default() -> None:
    assert layout.plan(SMALL, BOARD).size_of("INPUT_IMAGE") == MIB
    image = replace(SMALL, input_bytes=(602_112,))
    assert layout.plan(image, BOARD).size_of("INPUT_IMAGE") == 1216 + 64 * 8 + 64 * 602_112
    assert layout.plan(image, BOARD, 100).size_of("INPUT_IMAGE") == layout.input_image_bytes((602_112,), 100)


def test_the_input_image_shrinks_to_the_memory_that_is_left() -> None:
    crowded = replace(SMALL, planned_bytes=(255 * MIB,), input_bytes=(100_000,))
    size = layout.plan(crowded, BOARD).size_of("INPUT_IMAGE")
    assert layout.input_image_bytes((100_000,), 1) <= size < MIB
    assert 256 * MIB - 15 <= layout.aligned(9000) + 255 * MIB + size <= 256 * MIB


def test_what_does_not_fit_is_refused_with_its_arithmetic() -> None:
    huge = replace(SMALL, planned_bytes=(300 * MIB,))
    with pytest.raises(BuildError, match=r"the planned does not fit DDR of .*planned 314,572,800") as caught:
        layout.plan(huge, BOARD)
    terms = caught.value.message.split(": ")[1].split(" = ")
    parts = [int(word.replace(",", "")) for word in terms[0].split() if word[0].isdigit()]
    assert int(terms[1].split()[0].replace(",", "")) == sum(parts)


def test_more_inferences_than_the_memory_holds_are_refused() -> None:
    with pytest.raises(BuildError, match="input_image"):
        layout.plan(replace(SMALL, input_bytes=(MIB,)), BOARD, 257)
