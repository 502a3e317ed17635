"""Chooses the board for a program's firmware: the requested one, else the one for its NPU and simulator."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.base.boards import BOARD_NAMES, all_boards, board_named
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import families


@dataclass(frozen=True)
class BoardChoice:
    """A board's name and why it is this one; `notes` are for the record, should there be something to know of it."""

    board: str
    reason: str
    notes: tuple[str, ...] = ()


def choose_board(npu: str | None, requested: str | None = None, simulator: str | None = None) -> BoardChoice:
    """The board for a program that uses `npu` (None: no NPU), built to run on `simulator` (None: it is only built).

    Raises UsageError, with what would do, when the `requested` board does not exist, has no such NPU or is not in
    `simulator`.
    """
    if requested is not None:
        _check(npu, requested, simulator)
        return _choice(requested, "asked for with --board", npu)
    if npu is None:
        fitting = [
            row.name
            for row in all_boards().values()
            if simulator is None or row.is_default_in(simulator, npu)
        ]
        return _choice(fitting[0], "the first: the program uses no NPU", npu)
    own = families()[npu].board
    if simulator is None or board_named(own).is_default_in(simulator, npu):
        elsewhere = [] if simulator else _simulators_of_others(npu, own)
        return _choice(own, "; ".join([f"the board of {npu}", *elsewhere]), npu)
    for name in BOARD_NAMES:
        if board_named(name).is_default_in(simulator, npu):
            without = (
                f"and {own} only when asked for"
                if board_named(own).is_in(simulator, npu)
                else f"and no {own}"
            )
            return _choice(name, f"{simulator} has {npu} on this board, {without}", npu)
    raise UsageError(f"{simulator} has no board with {npu}", f"{npu} is on: {', '.join(_boards_with(npu))}")


def _boards_with(npu: str) -> list[str]:
    return [row.name for row in all_boards().values() if npu in row.npus]


def _check(npu: str | None, requested: str, simulator: str | None) -> None:
    chosen = board_named(requested)
    if npu is not None and npu not in chosen.npus:
        instead = families()[npu].board
        raise UsageError(
            f"{requested} has no {npu}, which the program is compiled for",
            f"build it for --board {instead}, or compile it for {' or '.join(chosen.npus)}",
        )
    if simulator is None or chosen.is_in(simulator, npu):
        return
    able = [key for key, npus in chosen.simulators.items() if npu is None or npu in npus]
    others = [
        row.name for row in all_boards().values() if row.name != requested and simulator in row.simulators
    ]
    with_npu = f" with {npu}" if npu else ""
    hints = [f"--simulator {key} runs it" for key in able]
    hints += [f"--board {name}" for name in others if board_named(name).is_in(simulator, npu)]
    raise UsageError(f"{simulator} cannot run {requested}{with_npu}", "; or ".join(hints))


def _simulators_of_others(npu: str, own: str) -> list[str]:
    """Where else than on the own board a program for `npu` runs, for people who look for a simulator."""
    return [
        f"{key} runs {npu} on {row.name} (--board {row.name})"
        for row in all_boards().values()
        for key, npus in row.simulators.items()
        if row.name != own and npu in npus and not board_named(own).is_default_in(key, npu)
    ]


def _choice(name: str, reason: str, npu: str | None) -> BoardChoice:
    if npu is None or name == families()[npu].board:
        return BoardChoice(name, reason)
    where = ", ".join(key for key, npus in board_named(name).simulators.items() if npu in npus)
    note = f"{name} with {npu} exists on {where} alone: the board of {npu} is {families()[npu].board}"
    return BoardChoice(name, reason, (note,))
