"""Whether the firmware of a program has room on the board of its NPU."""

from __future__ import annotations

from ethosu_sdk import boards, pte
from ethosu_sdk.firmware_build import MemoryFitError, choose_board, fit
from ethosu_sdk.firmware_build.firmware import requirements
from ethosu_sdk.steps.shared import systems

_SIMULATOR = "qemu"  # on whose board a program has to fit


def lacking(program: pte.Pte, own: systems.Priced | None) -> str:
    """Which memory is too small, with the arithmetic; empty where all are large enough. `own` is the system that the
    program was compiled for."""
    areas = None if own is None else own.areas
    needs = requirements(program.size, [program.plan()], program.target(), None, areas)
    board = boards.board(choose_board(program.npu(), None, _SIMULATOR).board)
    try:
        fit.plan(needs, board, 1, (), allow_spill=False)
    except MemoryFitError as error:
        return error.message
    return ""
