"""Plans memory, and refuses a program that does not fit with a suggestion that was planned and does fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ethosu_sdk.boards import Board, boards
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import layout
from ethosu_sdk.firmware_build.layout import DoesNotFitError, Layout, Requirements
from ethosu_sdk.firmware_build.memory_modes import memory_modes

# What makes a pool smaller, by its name.
_SMALLER = {
    "MODEL": "use a model with fewer or narrower weights: int8 takes a quarter of the bytes of floating point",
    "MODEL_DATA": "use data files with fewer or narrower weights",
    "PLANNED": "planned memory holds the model's state and what the CPU computes: use a smaller input or batch, and "
    "for a decoder a shorter context or caches in int8",
    "SCRATCH": "scratch holds the feature maps of the NPU: use a smaller input",
}
_NOTHING = "use a smaller model or input"


class MemoryFitError(BuildError):
    """A program that does not fit the board as its memory mode has it.

    `mode` is another memory mode that it could be compiled for and would fit in, by the sizes of the present program;
    empty when there is none. `spill` says that it fits when it may leave the mode's memory, `less_scratch` that it
    would fit with a smaller scratch.
    """

    def __init__(
        self, message: str, hint: str, *, mode: str = "", spill: bool = False, less_scratch: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.mode = mode
        self.spill = spill
        self.less_scratch = less_scratch


def plan(
    needs: Requirements,
    board: Board,
    inferences: int,
    allowed_modes: Sequence[str],
    *,
    allow_spill: bool,
    npu: str | None = None,
) -> Layout:
    """The layout of `needs` on `board` (:func:`layout.plan`), whose program may be compiled for `allowed_modes` too
    and computes on `npu`, if on any.

    MemoryFitError, with the arithmetic and the memory mode or number of inputs that would fit, when it does not.
    """
    try:
        return layout.plan(needs, board, inferences, allow_spill=allow_spill)
    except DoesNotFitError as error:
        raise _refusal(error, needs, board, inferences, allowed_modes, npu) from error


def _refusal(
    error: DoesNotFitError,
    needs: Requirements,
    board: Board,
    inferences: int,
    modes: Sequence[str],
    npu: str | None,
) -> MemoryFitError:
    nothing = _SMALLER.get(error.largest, _NOTHING)
    less = _fits(replace(needs, scratch_bytes=0, fast_scratch_bytes=0), board, inferences)
    if error.memory != board.fast.name:
        most = _most_inferences(needs, board, inferences)
        advice = f"{most:,} inferences fit one run: give that many inputs at once" if most else nothing
        return MemoryFitError(error.message, advice, less_scratch=less)
    mode, other = _other_mode(needs, board, inferences, modes)
    spill = _spill(needs, board, inferences)
    elsewhere = _other_board(needs, board, inferences, npu)
    data = _other_data_memory(needs, board, inferences)
    advice = "; or ".join(text for text in (data, other, spill, elsewhere) if text) or nothing
    return MemoryFitError(error.message, advice, mode=mode, spill=bool(spill), less_scratch=less)


def _fits(needs: Requirements, board: Board, inferences: int, *, allow_spill: bool = False) -> bool:
    try:
        layout.plan(needs, board, inferences, allow_spill=allow_spill)
    except DoesNotFitError:
        return False
    return True


def _other_mode(needs: Requirements, board: Board, inferences: int, modes: Sequence[str]) -> tuple[str, str]:
    """The first other mode that fits, and words for it; two empty texts without one.

    Vela plans anew for it: the sizes are those of the present program.
    """
    for mode in (name for name in memory_modes() if name in modes and name != needs.memory_mode):
        other = replace(needs, memory_mode=mode, areas=None, fast_scratch_bytes=None)
        try:
            result = layout.plan(other, board, inferences)
        except DoesNotFitError:
            continue
        fast = board.fast
        return mode, (
            f"compile it again with --memory-mode {mode}, which takes {result.end_in(fast):,} of the "
            f"{fast.size_bytes:,} bytes of {fast.name}, judging by this program's sizes"
        )
    return "", ""


def _other_data_memory(needs: Requirements, board: Board, inferences: int) -> str:
    """Words for the data files in the large memory; empty where they lie there, or that does not help."""
    if not needs.data_bytes or needs.data_memory == board.bulk.name:
        return ""
    if not _fits(replace(needs, data_memory=board.bulk.name), board, inferences):
        return ""
    return f"give --data-memory {board.bulk.name.lower()} for the data files"


def _other_board(needs: Requirements, board: Board, inferences: int, npu: str | None) -> str:
    """Words for the first other board with the NPU on which the program fits; empty without one."""
    for other in boards().values():
        if other.name == board.name or (npu is not None and npu not in other.npus):
            continue
        if _fits(needs, other, inferences):
            return (
                f"build it for --board {other.name}, whose {other.fast.name} has "
                f"{other.fast.size_bytes:,} bytes"
            )
    return ""


def _spill(needs: Requirements, board: Board, inferences: int) -> str:
    if not _fits(needs, board, inferences, allow_spill=True):
        return ""
    return (
        f"put it into {board.bulk.name} with --allow-spill: the outputs stay the same, but memory traffic is not "
        f"that of {needs.memory_mode}"
    )


def _most_inferences(needs: Requirements, board: Board, asked: int) -> int:
    """The most inferences, fewer than `asked`, whose inputs fit; 0 when not even one does."""
    low, high = 0, asked  # `low` fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(needs, board, middle, allow_spill=True):
            low = middle
        else:
            high = middle
    return low
