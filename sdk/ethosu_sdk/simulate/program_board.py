"""The board and the simulator of a program: one rule for `build` and `run`, so that they agree.

A requested board or simulator is taken. Otherwise the simulator is the first installed one that has the program's
NPU, and the board is the one that the NPU has in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base.boards import all_boards, board_named
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import cores, families
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, result_files
from ethosu_sdk.simulate import simulators

AUTO = "auto"


@dataclass(frozen=True)
class BoardAndSimulator:
    """A board, the simulator that runs its firmware (empty: none here), and why it is these."""

    board: str
    simulator: str
    reason: str


def compiled_core_of(path: Path, program: pte.Pte) -> str | None:
    """The processor that `compile` wrote down for the `program` at `path`, such as ``cortex-m85``; the program itself
    does not say it.

    None where it had an NPU as its target, or its record is not there. InputError for a record that was changed.
    """
    record = result_files.compile_record_path(path)
    if program.target() is not None or not record.is_file():
        return None
    found = bundle.compilation_of(record, program.sha256)
    return None if found is None else found.core


def board_for_build(npu: str | None, requested: str | None, core: str | None = None) -> BoardAndSimulator:
    """The board to build for a program that uses `npu` (None: no NPU) or was compiled for the processor `core`:
    `requested`, or the one that `run` takes.

    Raises UsageError when `requested` is no board or has no such NPU.
    """
    if requested is not None:  # whatever can run it here: firmware is built for other machines too
        chosen = choose_board(npu, requested)
        return BoardAndSimulator(chosen.board, "", chosen.reason)
    if core is not None:
        return BoardAndSimulator(cores()[core].board, "", _reason_of_core(core))
    simulator, why = _installed_simulator(npu, None)
    chosen = choose_board(npu, None, simulator or None)
    return BoardAndSimulator(chosen.board, simulator, f"{chosen.reason} ({why})")


def board_for_run(
    npu: str | None, requested: str | None, simulator: str, core: str | None = None
) -> BoardAndSimulator:
    """The board to run a program on that uses `npu` (None: no NPU) or was compiled for the processor `core`, and the
    simulator that does it.

    Raises UsageError when `requested` is no board, has no such NPU or is not in the simulator that was asked for.
    """
    core = core if requested is None else None
    board = requested if core is None else cores()[core].board
    why = f"{simulator} was asked for"
    if simulator == AUTO:
        installed, why = _installed_simulator(npu, board)
        simulator = installed or simulators.FIRMWARE_SIMULATORS[0]  # which says how to install it
    chosen = choose_board(npu, board, simulator)
    reason = chosen.reason if core is None else _reason_of_core(core)
    return BoardAndSimulator(chosen.board, simulator, f"{reason} ({why})")


def _reason_of_core(core: str) -> str:
    return f"the board of {core}, which the program is compiled for"


def _installed_simulator(npu: str | None, board: str | None) -> tuple[str, str]:
    """The first installed simulator that has `npu`, on `board` if given; empty without one. And why."""
    missing: list[str] = []
    for name in simulators.FIRMWARE_SIMULATORS:
        if board is not None and not board_named(board).is_in(name, npu):
            continue
        if simulators.is_installed(name, npu, board):
            without = f", {' and '.join(missing)} is not" if missing else ""
            return name, f"{name} is installed here{without}"
        missing.append(name)
    return "", f"no simulator is installed here: neither {' nor '.join(simulators.FIRMWARE_SIMULATORS)}"


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
        _check_board(npu, requested, simulator)
        return _choice(requested, "asked for with --board", npu)
    fitting = [
        row.name for row in all_boards().values() if simulator is None or row.is_default_in(simulator, npu)
    ]
    if npu is None:
        return _choice(fitting[0], "the first: the program uses no NPU", npu)
    own = families()[npu].board
    if own in fitting:
        elsewhere = [] if simulator else _simulators_of_others(npu, own)
        return _choice(own, "; ".join([f"the board of {npu}", *elsewhere]), npu)
    if fitting and simulator is not None:
        on_request = board_named(own).is_in(simulator, npu)
        without = f"and {own} only when asked for" if on_request else f"and no {own}"
        return _choice(fitting[0], f"{simulator} has {npu} on this board, {without}", npu)
    others = ", ".join(row.name for row in all_boards().values() if npu in row.npus)
    raise UsageError(f"{simulator} has no board with {npu}", f"{npu} is on: {others}")


def _check_board(npu: str | None, name: str, simulator: str | None) -> None:
    board = board_named(name)
    if npu is not None and npu not in board.npus:
        raise UsageError(
            f"{name} has no {npu}, which the program is compiled for",
            f"build it for --board {families()[npu].board}, or compile it for {' or '.join(board.npus)}",
        )
    if simulator is None or board.is_in(simulator, npu):
        return
    hints = [
        f"--simulator {key} runs it" for key, npus in board.simulators.items() if npu is None or npu in npus
    ]
    hints += [
        f"--board {row.name}"
        for row in all_boards().values()
        if row.name != name and row.is_in(simulator, npu)
    ]
    with_npu = f" with {npu}" if npu else ""
    raise UsageError(f"{simulator} cannot run {name}{with_npu}", "; or ".join(hints))


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
