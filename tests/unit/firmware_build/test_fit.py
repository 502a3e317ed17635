"""What is offered for a model that does not fit, and that the offer holds."""

import re
from dataclasses import replace
from typing import Any

import pytest

from ethosu_sdk import boards
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import fit, layout
from ethosu_sdk.firmware_build.layout import Requirements

BOARD = boards.board("corstone-300")
MIB = 1 << 20
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
        fit.plan(needs, BOARD, inferences, modes, allow_spill=False)
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
    layout.plan(replace(needs, memory_mode=offered, fast_scratch_bytes=None), BOARD)


def test_a_mode_that_would_not_fit_or_is_not_the_targets_is_not_offered() -> None:
    text = advice(replace(NEEDS, scratch_bytes=3 * MIB), NO_DRAM)
    assert "--memory-mode" not in text
    assert "--allow-spill" in text
    layout.plan(replace(NEEDS, scratch_bytes=3 * MIB), BOARD, allow_spill=True)


def test_spilling_is_not_offered_where_it_does_not_help() -> None:
    text = advice(
        replace(NEEDS, memory_mode="Dedicated_Sram", fast_scratch_bytes=5 * MIB), ("Dedicated_Sram",)
    )
    assert text == "use a smaller model or input"


def test_the_number_of_inferences_that_fit_is_exact() -> None:
    needs = replace(NEEDS, memory_mode="Shared_Sram", input_bytes=(MIB,))
    text = advice(needs, NO_DRAM, 1000)
    (most,) = (int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) inferences fit", text))
    layout.plan(needs, BOARD, most)
    with pytest.raises(layout.DoesNotFitError):
        layout.plan(needs, BOARD, most + 1)


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


def test_data_files_that_fit_the_large_memory_alone_are_offered_it() -> None:
    assert "--data-memory ddr" in advice(DATA, NO_DRAM)
    assert layout.plan(replace(DATA, data_memory="DDR"), BOARD).notes == ()
    too_large = replace(DATA, data_memory="", data_bytes=(256 * MIB, 5))
    assert advice(too_large, NO_DRAM) == "use data files with fewer or narrower weights"


def test_data_files_that_gave_way_are_not_said_to_lie_where_they_were_asked_for() -> None:
    moved = layout.plan(DATA, BOARD, allow_spill=True)
    assert {row.name: row.memory.name for row in moved.placements}["MODEL_DATA"] == "DDR"
    (note,) = moved.notes
    assert note.startswith("--data-memory asks for the model_data of 2,097,229 bytes in SRAM")
    (note,) = layout.plan(replace(DATA, data_bytes=(77,)), BOARD).notes
    assert note.startswith("the data files lie in SRAM, as --data-memory asks")
    without_npu = replace(DATA, memory_mode=None, scratch_bytes=0)
    (note,) = layout.plan(without_npu, BOARD, allow_spill=True).notes
    assert "None" not in note


def test_another_board_is_offered_where_the_program_fits_and_it_has_the_npu() -> None:
    """Corstone-320 has 4 MiB of SRAM, and Ethos-U85 alone."""
    found = {}
    for npu in ("ethos-u55", "ethos-u85", None):
        with pytest.raises(fit.MemoryFitError) as caught:
            fit.plan(NEEDS, BOARD, 1, (), allow_spill=False, npu=npu)
        found[npu] = "--board corstone-320, whose SRAM has 4,194,304 bytes" in caught.value.hint
    assert found == {"ethos-u55": False, "ethos-u85": True, None: True}
    with pytest.raises(fit.MemoryFitError) as caught:
        fit.plan(replace(NEEDS, scratch_bytes=2 * MIB), BOARD, 1, (), allow_spill=False)
    assert "--board" not in caught.value.hint, "5 MiB fit neither"


def test_a_smaller_scratch_helps_only_where_the_rest_fits() -> None:
    for scratch, model, helps in ((3 * MIB, MIB, True), (64, 3 * MIB, False)):
        with pytest.raises(fit.MemoryFitError) as caught:
            fit.plan(
                replace(NEEDS, scratch_bytes=scratch, model_bytes=model), BOARD, 1, (), allow_spill=False
            )
        assert caught.value.less_scratch == helps
