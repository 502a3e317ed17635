"""Planning with advice: what does not fit is refused together with what would fit, which is planned to be sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import layout
from ethosu_sdk.firmware_build.boards import Board
from ethosu_sdk.firmware_build.layout import DoesNotFitError, Layout, Requirements
from ethosu_sdk.firmware_build.memory_modes import memory_modes


def plan(
    needs: Requirements,
    board: Board,
    inferences: int,
    allowed_modes: Sequence[str],
    *,
    allow_spill: bool,
) -> Layout:
    """The layout of `needs` on `board` (:func:`layout.plan`), whose program may be compiled for `allowed_modes` too.

    BuildError, with the arithmetic and the memory mode or number of inputs that would fit, when it does not.
    """
    try:
        return layout.plan(needs, board, inferences, allow_spill=allow_spill)
    except DoesNotFitError as error:
        advice = _advice(error, needs, board, inferences, allowed_modes)
        raise BuildError(error.message, advice) from error


def _advice(
    error: DoesNotFitError, needs: Requirements, board: Board, inferences: int, modes: Sequence[str]
) -> str:
    if error.memory != board.fast.name:
        most = _most_inferences(needs, board, inferences)
        if most:
            return f"{most:,} inferences fit one run: give that many inputs at once"
        return "use a smaller model or input"
    found = [_other_mode(needs, board, inferences, modes), _spill(needs, board, inferences)]
    return "; or ".join(text for text in found if text) or "use a smaller model or input"


def _other_mode(needs: Requirements, board: Board, inferences: int, modes: Sequence[str]) -> str:
    """The first other mode that fits. Vela plans anew for it: the sizes are those of the present program."""
    for mode in (name for name in memory_modes() if name in modes and name != needs.memory_mode):
        other = replace(needs, memory_mode=mode, fast_scratch_bytes=None)
        try:
            result = layout.plan(other, board, inferences)
        except DoesNotFitError:
            continue
        fast = board.fast
        return (
            f"compile it again with --memory-mode {mode}, which takes {result.end_in(fast):,} of the "
            f"{fast.size_bytes:,} bytes of {fast.name} by this program's sizes"
        )
    return ""


def _spill(needs: Requirements, board: Board, inferences: int) -> str:
    try:
        layout.plan(needs, board, inferences, allow_spill=True)
    except DoesNotFitError:
        return ""
    return (
        f"let it lie in {board.bulk.name} with --allow-spill: outputs are the same, memory traffic is not that of "
        f"{needs.memory_mode}"
    )


def _most_inferences(needs: Requirements, board: Board, asked: int) -> int:
    """The most inferences, fewer than `asked`, whose inputs fit; 0 when not even one does."""
    low, high = 0, asked  # `low` fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            layout.plan(needs, board, middle, allow_spill=True)
            low = middle
        except DoesNotFitError:
            high = middle
    return low
