"""The choice of the board with any simulators installed, the memories that its CPU waits for, and what to type
where a program does not fit.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ethosu_sdk.base import board_profiles, filesystem
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import BuildError, UsageError
from ethosu_sdk.firmware_build import memory_fit
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.run import time_line
from ethosu_sdk.simulate import program_board, simulators
from ethosu_sdk.simulate.cpu_cycles import LineWaits
from tests.places import ROOT
from tests.tables import each


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Only the simulators of the parameter are; the FVP of SSE-320 is meant, for Ethos-U85."""
    there: tuple[object, ...] = request.param
    monkeypatch.setattr(
        simulators, "is_installed", lambda name, npu="", board=None: (name, board) in there or name in there
    )


@pytest.mark.parametrize(
    ("installed", "simulator", "chosen", "words"),
    [
        (("qemu",), "qemu", "corstone-300", "(qemu is installed here)"),
        (
            ("qemu", "fvp"),
            "qemu",
            "corstone-300",
            "qemu has ethos-u85 on this board, and corstone-320 only when asked for",
        ),
        (("fvp",), "fvp", "corstone-320", "(fvp is installed here, qemu is not)"),
    ],
    indirect=["installed"],
)
def test_build_and_run_take_the_same(installed: None, simulator: str, chosen: str, words: str) -> None:
    built, ran = (
        program_board.board_for_build("ethos-u85", None),
        program_board.board_for_run("ethos-u85", None, "auto"),
    )
    assert built == ran
    assert (ran.board, ran.simulator) == (chosen, simulator)
    assert words in ran.reason


@pytest.mark.parametrize("installed", [()], indirect=True)
def test_without_a_simulator_it_is_the_npus_own_board(installed: None) -> None:
    choice = program_board.board_for_build("ethos-u85", None)
    assert (choice.board, choice.simulator) == ("corstone-320", "")
    assert "no simulator is installed here" in choice.reason
    ran = program_board.board_for_run("ethos-u55", None, "auto")  # which says what to install
    assert ran.simulator == "qemu"


STOCK_QEMU = (("qemu", None), ("qemu", "corstone-300"))
OWN_QEMU = (*STOCK_QEMU, ("qemu", "corstone-320"))


@pytest.mark.parametrize("installed", [(*STOCK_QEMU, "fvp")], indirect=True)
def test_a_wish_counts(installed: None) -> None:
    assert program_board.board_for_build("ethos-u85", "corstone-320") == program_board.BoardAndSimulator(
        "corstone-320", "", "asked for with --board"
    )
    ran = program_board.board_for_run("ethos-u85", "corstone-320", "auto")  # Debian's QEMU has no such board
    assert (ran.board, ran.simulator) == ("corstone-320", "fvp")
    ran = program_board.board_for_run("ethos-u85", None, "fvp")
    assert (ran.board, ran.reason) == ("corstone-320", "the board of ethos-u85 (fvp was asked for)")
    assert program_board.board_for_run(None, "corstone-320", "auto").simulator == "fvp"


@pytest.mark.parametrize("installed", [OWN_QEMU, (*OWN_QEMU, "fvp")], indirect=True)
def test_our_own_qemu_changes_no_default(installed: None) -> None:
    assert program_board.board_for_run("ethos-u85", None, "auto").board == "corstone-300"
    assert program_board.board_for_run("ethos-u85", None, "qemu").board == "corstone-300"
    assert program_board.board_for_build("ethos-u85", None).board == "corstone-300"
    ran = program_board.board_for_run("ethos-u85", "corstone-320", "auto")
    assert (ran.board, ran.simulator) == ("corstone-320", "qemu")


@pytest.mark.parametrize("installed", [STOCK_QEMU], indirect=True)
def test_a_board_that_no_installed_simulator_has_is_left_to_qemu_to_ask_for(installed: None) -> None:
    assert program_board.board_for_run("ethos-u85", "corstone-320", "auto").simulator == "qemu"


@pytest.mark.parametrize("installed", [("qemu",)], indirect=True)
def test_an_unknown_board_is_a_usage_error(installed: None) -> None:
    with pytest.raises(UsageError, match="no firmware can be built for board 'corstone-3'"):
        program_board.board_for_run("ethos-u85", "corstone-3", "auto")


# --- Which memories the CPU waits for, and why it is sometimes not known.

ALIF = board_profiles.find_profile("alif-e8-hp")
SIZE = 10_000  # of the code


def system(name: str, mode: str) -> SystemConfig:
    return systems.system_from_ini(ALIF.vela_ini(), ALIF.ini_source, "ethos-u55", name, mode)


@pytest.mark.parametrize(
    ("name", "mode", "places", "waits"),
    [
        ("RTSS_HP_SRAM_MRAM", "Shared_Sram", ("MRAM", "MRAM", "SRAM0"), LineWaits(93.1, 93.1, 34.2)),
        ("RTSS_HP_SRAM_MRAM", "Sram_Only", ("MRAM", "SRAM0", "SRAM0"), LineWaits(93.1, 34.2, 34.2)),
        ("RTSS_HP_DTCM_MRAM", "Shared_Sram", ("MRAM", "MRAM", "DTCM"), LineWaits(93.1, 93.1, 0)),
    ],
)
def test_the_memory_mode_says_where_things_lie(
    name: str, mode: str, places: tuple[str, ...], waits: LineWaits
) -> None:
    found = time_line.cpu_memories_of_board(ALIF, system(name, mode), SIZE)
    assert found.names is not None
    assert (found.names.code, found.names.constants, found.names.arena) == places
    assert (found.waits, found.reason) == (waits, "")
    assert found.source.startswith("board profile alif-e8-hp: Alif Semiconductor, ensemble_vela.ini")


def test_code_and_programs_without_npu_lie_where_the_board_has_them() -> None:
    assert time_line.cpu_memories_of_board(ALIF, None, SIZE).waits == LineWaits(93.1, 93.1, 34.2)
    profile = replace(ALIF, cpu=structs.replace(ALIF.cpu, icache_bytes=SIZE))
    assert time_line.cpu_memories_of_board(profile, None, SIZE).waits is not None


def with_sram(**facts: object) -> BoardProfile:
    rows = (structs.replace(row, **facts) if row.name == "SRAM0" else row for row in ALIF.memories)
    return replace(ALIF, memories=tuple(rows))


@each(
    ("profile", "words"),
    [
        (None, "--system NAME prices a board"),
        (board_profiles.find_profile("corstone-300-mps3"), "how long the CPU waits for DDR"),
        (replace(ALIF, systems=(replace(ALIF.default_system, areas={}),)), "does not say which memories"),
        (with_sram(cpu_wait_cycles=None), "how long the CPU waits for SRAM0"),
        (with_sram(cached=False), "SRAM0 of alif-e8-hp is not cached"),
        (with_sram(cached=None), "SRAM0 of alif-e8-hp is not cached"),
        (replace(ALIF, cpu=structs.replace(ALIF.cpu, dcache_bytes=0)), "has no data cache"),
        (replace(ALIF, cpu=structs.replace(ALIF.cpu, icache_bytes=0)), "has no instruction cache"),
        (
            replace(ALIF, cpu=structs.replace(ALIF.cpu, icache_bytes=SIZE - 1)),
            "does not stay in the 9,999 bytes",
        ),
    ],
)
def test_what_is_not_known_is_named(profile: BoardProfile | None, words: str) -> None:
    found = time_line.cpu_memories_of_board(profile, None, SIZE)
    assert (found.names, found.waits) == (None, None)
    assert words in found.reason


# --- What to type when a program does not fit its memory: a record that is none says nothing, and stops nothing.

EXAMPLE = ROOT / "schemas" / "examples" / "valid" / "compile-add.json"
MODE = "Shared_Sram"

Record = dict[str, Any]


def _hint(folder: Path, change: Callable[[Record], object], *, less_scratch: bool = True) -> str:
    """The hint for a program whose record went through `change`; `less_scratch` would make it fit."""
    program = folder / "add.pte"
    program.write_bytes(b"a program")
    record = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    record["model"]["sha256"] = filesystem.sha256_file(program)
    change(record)
    (folder / "add.compile.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(BuildError) as caught, memory_fit.advice_added(program, compiled_here=False):
        raise MemoryFitError("too large", "", mode=MODE, less_scratch=less_scratch)
    return caught.value.hint


def test_the_record_tells_how_to_compile_again(tmp_path: Path) -> None:
    hint = _hint(tmp_path, lambda record: None)
    assert "try: ethosu-sdk compile zoo:add --target ethos-u55-128" in hint
    assert f"--memory-mode {MODE}" in hint
    assert "--optimise=Size" in hint
    assert "--optimise=Size" not in _hint(tmp_path, lambda record: None, less_scratch=False)


@each(
    "change",
    [
        lambda record: record.update(model=[]),
        lambda record: record.update(options=None),
        lambda record: record["options"].update(vela_flags=3),
        lambda record: record["target"].update(npu=[]),
        lambda record: record.update(source=3),
        lambda record: record.update(source=f"{'a' * 300}.py"),
        lambda record: record["provenance"].update(inputs="text"),
    ],
    ids=["model", "options", "flags", "target", "source", "name", "inputs"],
)
def test_a_forged_record_tells_nothing(change: Callable[[Record], object], tmp_path: Path) -> None:
    assert "compile" not in _hint(tmp_path, change)
