"""Memory placement and its arithmetic, what is offered where a model does not fit, and the choice of the board."""

import re
from dataclasses import replace
from typing import Any

import pytest

from ethosu_sdk.base import boards
from ethosu_sdk.base.errors import BuildError, UsageError
from ethosu_sdk.firmware_build import memory_fit
from ethosu_sdk.firmware_build.memory_fit import DoesNotFitError, Layout, Requirements
from ethosu_sdk.run import input_image
from ethosu_sdk.simulate.program_board import choose_board
from tests.tables import each

BOARD = boards.board_named("corstone-300")
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


def test_shared_sram_keeps_the_scratch_beside_the_npu_or_is_refused() -> None:
    result = memory_fit.planned_layout(SMALL, BOARD)
    assert memory_of(result, "SCRATCH") == "SRAM"
    assert memory_of(result, "MODEL") == "DDR"
    assert memory_of(result, "PLANNED") == "DDR"
    assert memory_of(result, "METHOD_POOL") == "DTCM"
    assert result.size_of("PLANNED") == 400 + 48
    assert result.size_of("MODEL") == 9000
    assert result.size_of("FAST_SCRATCH") == 0
    assert result.notes == ()
    needs = replace(SMALL, scratch_bytes=2 * MIB + 1)
    with pytest.raises(
        DoesNotFitError, match=r"the scratch .* 2,097,168 bytes, but it has 2,097,152 \(16 too many"
    ):
        memory_fit.planned_layout(needs, BOARD)
    assert memory_of(memory_fit.planned_layout(needs, BOARD, allow_spill=True), "SCRATCH") == "DDR"
    assert (
        memory_of(memory_fit.planned_layout(replace(SMALL, method_pool_bytes=300_000), BOARD), "METHOD_POOL")
        == "DDR"
    )


FULL_SRAM = replace(SMALL, memory_mode="Sram_Only", scratch_bytes=MIB, model_bytes=MIB)


def test_sram_only_is_kept_or_spilled_no_more_than_it_must() -> None:
    result = memory_fit.planned_layout(FULL_SRAM, BOARD)
    assert memory_of(result, "MODEL") == memory_of(result, "SCRATCH") == "SRAM"
    assert result.end_in(BOARD.fast) == 2 * MIB
    assert result.notes == ()
    with pytest.raises(DoesNotFitError) as caught:
        memory_fit.planned_layout(replace(FULL_SRAM, model_bytes=MIB + 1), BOARD)
    assert caught.value.message == (
        "the model does not fit SRAM of corstone-300 in memory mode Sram_Only: model 1,048,577 + scratch 1,048,576 "
        "+ alignment 15 = 2,097,168 bytes, but it has 2,097,152 (16 too many)"
    )
    # The model gives way first: it is read alone, the scratch is written as well.
    assert memory_fit.planned_layout(FULL_SRAM, BOARD, allow_spill=True) == memory_fit.planned_layout(
        FULL_SRAM, BOARD
    )
    one_moves = memory_fit.planned_layout(replace(FULL_SRAM, model_bytes=MIB + 1), BOARD, allow_spill=True)
    assert (memory_of(one_moves, "MODEL"), memory_of(one_moves, "SCRATCH")) == ("DDR", "SRAM")
    assert len(one_moves.notes) == 1
    assert "the model of 1,048,577 bytes in SRAM" in one_moves.notes[0]
    assert "not those of Sram_Only" in one_moves.notes[0]
    both_move = memory_fit.planned_layout(
        replace(FULL_SRAM, scratch_bytes=2 * MIB + 1), BOARD, allow_spill=True
    )
    assert (memory_of(both_move, "MODEL"), memory_of(both_move, "SCRATCH")) == ("DDR", "DDR")
    assert len(both_move.notes) == 2


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(BuildError, match="memory mode 'Shared_Sram_2'") as caught:
        memory_fit.planned_layout(replace(SMALL, memory_mode="Shared_Sram_2"), BOARD)
    assert "did you mean 'Shared_Sram'?" in caught.value.hint
    needs = replace(SMALL, memory_mode="Dedicated_Sram", fast_scratch_bytes=2 * MIB + 1)
    with pytest.raises(DoesNotFitError, match="fast_scratch 2,097,168"):
        memory_fit.planned_layout(needs, BOARD, allow_spill=True)


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
    result = memory_fit.planned_layout(replace(SMALL, memory_mode=mode), BOARD)
    assert memory_of(result, "SCRATCH") == "DDR"
    assert memory_of(result, "FAST_SCRATCH") == "SRAM"
    assert result.size_of("FAST_SCRATCH") == fast_bytes


@pytest.mark.parametrize(("known", "pool"), [(0, 0), (1, 16), (11_360, 11_360), (2 * MIB, 2 * MIB)])
def test_a_fast_scratch_of_known_size_gets_no_more(known: int, pool: int) -> None:
    needs = replace(SMALL, memory_mode="Dedicated_Sram_384KB", fast_scratch_bytes=known)
    result = memory_fit.planned_layout(needs, BOARD)
    assert result.size_of("FAST_SCRATCH") == pool
    (row,) = (row for row in result.placements if row.name == "FAST_SCRATCH")
    assert (row.used_bytes, row.memory.name) == (known, "SRAM")


@each("inputs", [(), (256,), (256, 10), (1, 1, 1)])
@each("inferences", [1, 2, 65])
def test_the_input_image_is_as_large_as_the_encoder_makes_it(
    inputs: tuple[int, ...], inferences: int
) -> None:
    image = input_image.encode_image([[bytes(size) for size in inputs]] * inferences, [[130, 135]])
    assert memory_fit.input_image_bytes(inputs, inferences) == len(image)


def test_the_input_image_holds_64_inferences_or_what_is_left() -> None:
    assert memory_fit.planned_layout(SMALL, BOARD).size_of("INPUT_IMAGE") == MIB
    image = replace(SMALL, input_bytes=(602_112,))
    assert memory_fit.planned_layout(image, BOARD).size_of("INPUT_IMAGE") == 1216 + 64 * 8 + 64 * 602_112
    assert memory_fit.planned_layout(image, BOARD, 100).size_of(
        "INPUT_IMAGE"
    ) == memory_fit.input_image_bytes((602_112,), 100)
    crowded = replace(SMALL, planned_bytes=(255 * MIB,), input_bytes=(100_000,))
    size = memory_fit.planned_layout(crowded, BOARD).size_of("INPUT_IMAGE")
    assert memory_fit.input_image_bytes((100_000,), 1) <= size < MIB
    assert 256 * MIB - 15 <= memory_fit.aligned(9000) + 255 * MIB + size <= 256 * MIB
    with pytest.raises(BuildError, match="input_image"):
        memory_fit.planned_layout(replace(SMALL, input_bytes=(MIB,)), BOARD, 257)


def test_what_does_not_fit_is_refused_with_its_arithmetic() -> None:
    huge = replace(SMALL, planned_bytes=(300 * MIB,))
    with pytest.raises(BuildError, match=r"the planned does not fit DDR of .*planned 314,572,800") as caught:
        memory_fit.planned_layout(huge, BOARD)
    terms = caught.value.message.split(": ")[1].split(" = ")
    parts = [int(word.replace(",", "")) for word in terms[0].split() if word[0].isdigit()]
    assert int(terms[1].split()[0].replace(",", "")) == sum(parts)


# --- What is offered for a model that does not fit, and that the offer holds.

NO_DRAM = ("Sram_Only", "Shared_Sram")
ALL = (*NO_DRAM, "Dedicated_Sram", "Dedicated_Sram_256KB", "Dedicated_Sram_384KB", "Dedicated_Sram_512KB")
NEEDS = Requirements(
    model_bytes=3 * MIB,
    memory_mode="Sram_Only",
    scratch_bytes=MIB,
    planned_bytes=(400,),
    method_pool_bytes=4096,
    input_bytes=(256,),
)


def advice(needs: Requirements, modes: tuple[str, ...], inferences: int = 1) -> str:
    with pytest.raises(BuildError) as caught:
        memory_fit.fitting_layout(needs, BOARD, inferences, modes, allow_spill=False)
    assert caught.value.exit_code == 5
    check_arithmetic(caught.value.message)
    return caught.value.hint


def check_arithmetic(message: str) -> None:
    """The terms add up to the sum, and that is as much larger than the memory as the message says."""
    found = re.search(r": ([^:]*) bytes, but it has ([\d,]+) \(([\d,]+) too many\)$", message)
    assert found, message
    *parts, needed = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", found[1]))
    size, over = (int(number.replace(",", "")) for number in found.groups()[1:])
    assert sum(parts or [needed]) == needed == size + over, message


@pytest.mark.parametrize(
    ("needs", "modes", "offered", "fast_bytes"),
    [
        (NEEDS, NO_DRAM, "Shared_Sram", MIB),
        (replace(NEEDS, scratch_bytes=3 * MIB), ALL, "Dedicated_Sram_384KB", 384 << 10),
        (
            replace(NEEDS, memory_mode="Dedicated_Sram", fast_scratch_bytes=3 * MIB, scratch_bytes=9 * MIB),
            ALL,
            "Dedicated_Sram_384KB",
            384 << 10,
        ),
    ],
)
def test_the_mode_that_is_offered_fits(
    needs: Requirements, modes: tuple[str, ...], offered: str, fast_bytes: int
) -> None:
    text = advice(needs, modes)
    assert f"--memory-mode {offered}, which takes {fast_bytes:,} of the 2,097,152 bytes of SRAM" in text
    memory_fit.planned_layout(replace(needs, memory_mode=offered, fast_scratch_bytes=None), BOARD)


def test_what_would_not_help_is_not_offered() -> None:
    text = advice(replace(NEEDS, scratch_bytes=3 * MIB), NO_DRAM)
    assert "--memory-mode" not in text
    assert "--allow-spill" in text
    memory_fit.planned_layout(replace(NEEDS, scratch_bytes=3 * MIB), BOARD, allow_spill=True)
    text = advice(
        replace(NEEDS, memory_mode="Dedicated_Sram", fast_scratch_bytes=5 * MIB), ("Dedicated_Sram",)
    )
    assert text == "use a smaller model or input"


def test_the_number_of_inferences_that_fit_is_exact() -> None:
    needs = replace(NEEDS, memory_mode="Shared_Sram", input_bytes=(MIB,))
    text = advice(needs, NO_DRAM, 1000)
    (most,) = (int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) inferences fit", text))
    memory_fit.planned_layout(needs, BOARD, most)
    with pytest.raises(memory_fit.DoesNotFitError):
        memory_fit.planned_layout(needs, BOARD, most + 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_bytes": 257 * MIB}, "fewer or narrower weights"),
        ({"planned_bytes": (257 * MIB,)}, "a shorter context or caches in int8"),
        ({"memory_mode": "Dedicated_Sram", "scratch_bytes": 257 * MIB}, "scratch holds the feature maps"),
    ],
    ids=["model", "planned", "scratch"],
)
def test_a_program_too_large_for_ddr_is_told_what_to_shrink(changes: dict[str, Any], words: str) -> None:
    needs = replace(NEEDS, memory_mode="Shared_Sram", fast_scratch_bytes=0)
    assert words in advice(replace(needs, **changes), ALL)


DATA = replace(NEEDS, memory_mode="Shared_Sram", data_bytes=(2 * MIB, 77), data_memory="SRAM")


def test_data_files_lie_where_they_are_asked_for_or_say_so() -> None:
    assert "--data-memory ddr" in advice(DATA, NO_DRAM)
    assert memory_fit.planned_layout(replace(DATA, data_memory="DDR"), BOARD).notes == ()
    too_large = replace(DATA, data_memory="", data_bytes=(256 * MIB, 5))
    assert advice(too_large, NO_DRAM) == "use data files with fewer or narrower weights"
    moved = memory_fit.planned_layout(DATA, BOARD, allow_spill=True)
    assert {row.name: row.memory.name for row in moved.placements}["MODEL_DATA"] == "DDR"
    (note,) = moved.notes
    assert note.startswith("--data-memory asks for the model_data of 2,097,229 bytes in SRAM")
    (note,) = memory_fit.planned_layout(replace(DATA, data_bytes=(77,)), BOARD).notes
    assert note.startswith("the data files lie in SRAM, as --data-memory asks")
    without_npu = replace(DATA, memory_mode=None, scratch_bytes=0)
    (note,) = memory_fit.planned_layout(without_npu, BOARD, allow_spill=True).notes
    assert "None" not in note


def test_boards_and_scratches_are_offered_where_they_help() -> None:
    """Corstone-320 has 4 MiB of SRAM, and Ethos-U85 alone."""
    found = {}
    for npu in ("ethos-u55", "ethos-u85", None):
        with pytest.raises(memory_fit.MemoryFitError) as caught:
            memory_fit.fitting_layout(NEEDS, BOARD, 1, (), allow_spill=False, npu=npu)
        found[npu] = "--board corstone-320, whose SRAM has 4,194,304 bytes" in caught.value.hint
    assert found == {"ethos-u55": False, "ethos-u85": True, None: True}
    with pytest.raises(memory_fit.MemoryFitError) as caught:
        memory_fit.fitting_layout(replace(NEEDS, scratch_bytes=2 * MIB), BOARD, 1, (), allow_spill=False)
    assert "--board" not in caught.value.hint, "5 MiB fit neither"
    for scratch, model, helps in ((3 * MIB, MIB, True), (64, 3 * MIB, False)):
        with pytest.raises(memory_fit.MemoryFitError) as caught:
            memory_fit.fitting_layout(
                replace(NEEDS, scratch_bytes=scratch, model_bytes=model), BOARD, 1, (), allow_spill=False
            )
        assert caught.value.less_scratch == helps


# --- Which board a program is built for, and what is refused.


@each(
    ("npu", "wish", "simulator", "board"),
    [
        ("ethos-u55", None, None, "corstone-300"),
        ("ethos-u65", None, "fvp", "corstone-300"),
        ("ethos-u85", None, None, "corstone-320"),
        ("ethos-u85", None, "fvp", "corstone-320"),
        ("ethos-u85", None, "qemu", "corstone-300"),
        ("ethos-u85", "corstone-300", None, "corstone-300"),
        (None, None, None, "corstone-300"),
        (None, None, "qemu", "corstone-300"),
        (None, "corstone-320", "fvp", "corstone-320"),
        ("ethos-u85", "corstone-320", "qemu", "corstone-320"),
        (None, "corstone-320", "qemu", "corstone-320"),
    ],
)
def test_the_board(npu: str | None, wish: str | None, simulator: str | None, board: str) -> None:
    choice = choose_board(npu, wish, simulator)
    assert choice.board == board
    assert choice.reason
    assert bool(choice.notes) == (npu == "ethos-u85" and board == "corstone-300")


def test_the_reason_says_where_the_firmware_can_run() -> None:
    assert "qemu runs ethos-u85 on corstone-300 (--board corstone-300)" in choose_board("ethos-u85").reason
    assert choose_board("ethos-u55").reason == "the board of ethos-u55"
    (note,) = choose_board("ethos-u85", simulator="qemu").notes
    assert "exists on qemu alone" in note


@pytest.mark.parametrize(
    ("npu", "wish", "simulator", "message", "hint"),
    [
        ("ethos-u55", "corstone-320", None, "corstone-320 has no ethos-u55", "--board corstone-300"),
        ("ethos-u65", "corstone-320", "qemu", "corstone-320 has no ethos-u65", "--board corstone-300"),
        ("ethos-u85", "corstone-300", "fvp", "fvp cannot run corstone-300", "--board corstone-320"),
        ("ethos-u85", "corstone-300", "fvp", "fvp cannot run corstone-300", "--simulator qemu"),
        ("ethos-u55", "corstone-310", None, "corstone-310", "did you mean 'corstone-3"),
    ],
)
def test_what_cannot_be_is_a_usage_error_with_the_alternative(
    npu: str | None, wish: str, simulator: str | None, message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        choose_board(npu, wish, simulator)
    assert hint in caught.value.hint
