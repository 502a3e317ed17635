"""The board and the simulator of a program: one rule for `build` and `run`, so that they agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import boards
from ethosu_sdk.base.targets import cores
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, result_files
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.board_choice import choose_board

# ---- steps.shared.compiled_core
# The processor that a program without an NPU was compiled for; the program itself does not say it.


def compiled_core_of(path: Path, program: pte.Pte) -> str | None:
    """The processor that `compile` wrote down for the `program` at `path`, such as ``cortex-m85``; None where it had
    an NPU as its target, or its record is not there. InputError for a record that was changed."""
    record = result_files.compile_record_path(path)
    if program.target() is not None or not record.is_file():
        return None
    found = bundle.compilation_of(record, program.sha256)
    return None if found is None else found.core


# ---- steps.shared.board
# The board and the simulator of a program: one rule for `build` and `run`, so that they agree.
#
# A requested board or simulator is taken. Otherwise the simulator is the first installed one that has the program's
# NPU, and the board is the one that the NPU has in it.

AUTO = "auto"


@dataclass(frozen=True)
class BoardAndSimulator:
    """A board, the simulator that runs its firmware (empty: none here), and why it is these."""

    board: str
    simulator: str
    reason: str


def board_for_build(npu: str | None, requested: str | None, core: str | None = None) -> BoardAndSimulator:
    """The board to build for a program that uses `npu` (None: no NPU) or was compiled for the processor `core`:
    `requested`, or the one that `run` takes.

    Raises UsageError when `requested` is no board or has no such NPU.
    """
    if requested is None and core is not None:
        return BoardAndSimulator(cores()[core].board, "", _of_core(core))
    if requested is not None:  # whatever can run it here: firmware is built for other machines too
        chosen = choose_board(npu, requested)
        return BoardAndSimulator(chosen.board, "", chosen.reason)
    simulator, why = _installed(npu, None)
    chosen = choose_board(npu, None, simulator or None)
    return BoardAndSimulator(chosen.board, simulator, f"{chosen.reason} ({why})")


def board_for_run(
    npu: str | None, requested: str | None, simulator: str, core: str | None = None
) -> BoardAndSimulator:
    """The board to run a program on that uses `npu` (None: no NPU) or was compiled for the processor `core`, and the
    simulator that does it.

    Raises UsageError when `requested` is no board, has no such NPU or is not in the simulator that was asked for.
    """
    by_core = requested is None and core is not None
    requested = cores()[core].board if requested is None and core is not None else requested
    why = f"{simulator} was asked for"
    if simulator == AUTO:
        installed, why = _installed(npu, requested)
        simulator = installed or simulators.FIRMWARE_SIMULATORS[0]  # which says how to install it
    chosen = choose_board(npu, requested, simulator)
    reason = _of_core(core or "") if by_core else chosen.reason
    return BoardAndSimulator(chosen.board, simulator, f"{reason} ({why})")


def _of_core(core: str) -> str:
    return f"the board of {core}, which the program is compiled for"


def _installed(npu: str | None, requested: str | None) -> tuple[str, str]:
    """The first installed simulator that has `npu`, on the board `requested` if given; empty without one. And why."""
    missing: list[str] = []
    for name in simulators.FIRMWARE_SIMULATORS:
        if requested is not None and not boards.board_named(requested).is_in(name, npu):
            continue
        if simulators.is_installed(name, npu, requested):
            without = f", {' and '.join(missing)} is not" if missing else ""
            return name, f"{name} is installed here{without}"
        missing.append(name)
    return "", f"no simulator is installed here: neither {' nor '.join(simulators.FIRMWARE_SIMULATORS)}"
