"""Where a model's memory goes, and whether it fits: pure arithmetic, before anything is compiled.

Memory modes are kept to the letter: a buffer that does not fit where its mode has it is refused, unless the caller
allows it to spill into the large memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ethosu_sdk import protocol
from ethosu_sdk.boards import Board, Memory
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build.memory_modes import memory_mode
from ethosu_sdk.targets import MemoryAreas

POOL_ALIGNMENT = 16
MODEL_ALIGNMENT = 128
MIB = 1 << 20

# The order in which placement.ld and firmware/board/common/sections.ld lay the pools into a memory that they share.
LINK_ORDER = ("MODEL_DATA", "MODEL", "SCRATCH", "FAST_SCRATCH", "PLANNED", "METHOD_POOL", "INPUT_IMAGE")
_SPILLABLE = ("MODEL_DATA", "MODEL", "SCRATCH")  # in the order in which they give way

_DEFAULT_INFERENCES = 64  # inputs of so many inferences fit the input image
_MIN_INPUT_IMAGE_BYTES = MIB
_METHOD_POOL_NEAR_LIMIT = 256 << 10  # the rest of that memory is for the stack, .data and .bss


@dataclass(frozen=True)
class Requirements:
    """What one model asks of the memory; all sizes in bytes."""

    model_bytes: int
    memory_mode: str | None  # None when nothing is delegated
    scratch_bytes: int  # the largest of all delegates: they run one after the other
    planned_bytes: tuple[int, ...]  # ExecuTorch's planned buffers, in the order of their memory ids
    method_pool_bytes: int
    input_bytes: tuple[int, ...]  # each input of one inference
    fast_scratch_bytes: int | None = None  # the largest of all delegates; None when it is not known
    areas: MemoryAreas | None = None  # where the mode has things; None for one that its name tells
    extra_image_bytes: int = 0  # of the input image, beside inputs
    data_bytes: tuple[int, ...] = ()  # each data file of the model
    data_memory: str = ""  # the memory that they lie in; empty: where the mode has the model


@dataclass(frozen=True)
class Placement:
    """A pool of the firmware, the memory it lies in, and how much of it the model is known to need."""

    name: str  # the linker script's alias, such as SCRATCH
    memory: Memory
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True)
class Layout:
    """All pools with their memories; `notes` say where this differs from what the memory mode promises."""

    placements: tuple[Placement, ...]
    notes: tuple[str, ...]

    def size_of(self, name: str) -> int:
        """Size in bytes of the pool called `name`."""
        return next(row.size_bytes for row in self.placements if row.name == name)

    def end_in(self, memory: Memory) -> int:
        """How far the pools in `memory` reach into it, in bytes."""
        return end_of([row for row in self.placements if row.memory == memory])


class DoesNotFitError(BuildError):
    """The pools of one memory are too large for it: the names of the memory and of the `largest` pool in it."""

    def __init__(self, message: str, memory: str, largest: str) -> None:
        super().__init__(message)
        self.memory = memory
        self.largest = largest


def aligned(size: int, alignment: int = POOL_ALIGNMENT) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def end_of(rows: Sequence[Placement]) -> int:
    """How far `rows`, which lie in one memory, reach into it when the linker lays them, in bytes."""
    end = 0
    for row in sorted(rows, key=lambda row: LINK_ORDER.index(row.name)):
        end = aligned(end, _alignment(row)) + row.size_bytes if row.size_bytes else end
    return end


def _alignment(row: Placement) -> int:
    return MODEL_ALIGNMENT if row.name in ("MODEL", "MODEL_DATA") else POOL_ALIGNMENT


def input_image_bytes(input_bytes: tuple[int, ...], inferences: int) -> int:
    """Size in bytes of an input image for so many inferences (:mod:`ethosu_sdk.protocol` states its layout)."""
    data = sum(aligned(size) for size in input_bytes)
    table = protocol.INPUT_IMAGE_REFERENCE_BYTES * len(input_bytes)
    return aligned(protocol.INPUT_IMAGE_HEADER_BYTES + table * inferences) + data * inferences


def plan(needs: Requirements, board: Board, inferences: int = 1, *, allow_spill: bool = False) -> Layout:
    """Place everything that `needs` asks for, exactly as the linker will.

    The input image holds 64 inferences and at least 1 MiB, less where the memory is short, and in any case
    `inferences`: one firmware serves runs of many lengths. With `allow_spill`, the model and then the scratch leave a
    fast memory that is too small for what the memory mode wants there, and a note says so. BuildError for an unknown
    memory mode, DoesNotFitError, with the arithmetic, when something does not fit.
    """
    notes: list[str] = []
    rows = [*_model_data(needs, board), *_npu_pools(needs, board)]
    if allow_spill:
        rows = _spilled(rows, needs, board, notes)
    notes += _unusual_data(rows, needs, board)
    planned = sum(aligned(size) for size in needs.planned_bytes)
    rows.append(Placement("PLANNED", board.bulk, planned, sum(needs.planned_bytes)))
    rows.append(_method_pool(needs, board))
    rows.append(_input_image(needs, board, rows, inferences))
    for memory in board.memories:
        _check_fit(memory, [row for row in rows if row.memory == memory], needs.memory_mode, board)
    return Layout(tuple(rows), tuple(notes))


def _method_pool(needs: Requirements, board: Board) -> Placement:
    small = needs.method_pool_bytes <= _METHOD_POOL_NEAR_LIMIT
    size = needs.method_pool_bytes
    return Placement("METHOD_POOL", board.near if small else board.bulk, size, size)


def data_memories(board: Board) -> tuple[Memory, ...]:
    """The memories that data files can lie in: those that the NPU reaches, too."""
    return (board.fast, board.bulk)


def _model_data(needs: Requirements, board: Board) -> list[Placement]:
    """MODEL_DATA: the data files one after the other, each aligned as the model is."""
    if not needs.data_bytes:
        return []
    usual = _usual_memory(needs, board)
    memory = next((row for row in data_memories(board) if row.name == needs.data_memory), usual)
    *others, last = needs.data_bytes
    size = sum(aligned(size, MODEL_ALIGNMENT) for size in others) + last
    return [Placement("MODEL_DATA", memory, size, size)]


def _usual_memory(needs: Requirements, board: Board) -> Memory:
    """Where the memory mode has the model, and so its data files."""
    return {"fast": board.fast, "bulk": board.bulk}[memory_mode(needs.memory_mode, needs.areas).model]


def _unusual_data(rows: Sequence[Placement], needs: Requirements, board: Board) -> list[str]:
    """A note when the data files lie where --data-memory asks, and not where the memory mode has the model."""
    usual = _usual_memory(needs, board)
    found = next((row.memory for row in rows if row.name == "MODEL_DATA"), usual)
    if needs.memory_mode is None or found == usual or found.name != needs.data_memory:
        return []
    return [
        f"the data files lie in {found.name}, as --data-memory asks, but {needs.memory_mode} has the model in "
        f"{usual.name}: cycles and traffic are priced for {usual.name}"
    ]


def _npu_pools(needs: Requirements, board: Board) -> list[Placement]:
    """MODEL, SCRATCH and FAST_SCRATCH, as the memory mode has them."""
    mode = memory_mode(needs.memory_mode, needs.areas)
    kinds = {"fast": board.fast, "bulk": board.bulk}
    fast_bytes = needs.fast_scratch_bytes
    if fast_bytes is None:
        limit = board.fast.size_bytes if mode.fast_scratch_bytes is None else mode.fast_scratch_bytes
        fast_bytes = limit if mode.fast_scratch else 0
    return [
        Placement("MODEL", kinds[mode.model], needs.model_bytes, needs.model_bytes),
        Placement("SCRATCH", kinds[mode.scratch], aligned(needs.scratch_bytes), needs.scratch_bytes),
        Placement("FAST_SCRATCH", board.fast, aligned(fast_bytes), fast_bytes),
    ]


def _spilled(rows: list[Placement], needs: Requirements, board: Board, notes: list[str]) -> list[Placement]:
    """`rows` with as much of them moved from the fast into the large memory as must be."""
    for name in _SPILLABLE:
        fast = [row for row in rows if row.memory == board.fast]
        moving = next((row for row in fast if row.name == name), None)
        if moving is None or end_of(fast) <= board.fast.size_bytes:
            continue
        rows = [replace(row, memory=board.bulk) if row is moving else row for row in rows]
        asked = name == "MODEL_DATA" and _usual_memory(needs, board) != board.fast
        place = (
            f"the {name.lower()} of {moving.used_bytes:,} bytes in {board.fast.name}, which is too small: it lies in "
            f"{board.bulk.name}"
        )
        if asked:
            notes.append(f"--data-memory asks for {place}")
        else:
            notes.append(
                f"{needs.memory_mode} wants {place}, and traffic figures are not those of {needs.memory_mode}"
            )
    return rows


def _input_image(needs: Requirements, board: Board, others: list[Placement], inferences: int) -> Placement:
    preferred_bytes = max(_MIN_INPUT_IMAGE_BYTES, input_image_bytes(needs.input_bytes, _DEFAULT_INFERENCES))
    used = aligned(end_of([row for row in others if row.memory == board.bulk]))
    left = (board.bulk.size_bytes - used) // POOL_ALIGNMENT * POOL_ALIGNMENT
    least = input_image_bytes(needs.input_bytes, inferences) + aligned(needs.extra_image_bytes)
    return Placement("INPUT_IMAGE", board.bulk, max(least, min(preferred_bytes, left)), least)


def _check_fit(memory: Memory, rows: list[Placement], mode: str | None, board: Board) -> None:
    end = end_of(rows)
    if end <= memory.size_bytes:
        return
    present = sorted((row for row in rows if row.size_bytes), key=lambda row: LINK_ORDER.index(row.name))
    terms = [f"{row.name.lower()} {row.size_bytes:,}" for row in present]
    padding = end - sum(row.size_bytes for row in present)
    if padding:
        terms.append(f"alignment {padding:,}")
    largest = max(present, key=lambda row: row.size_bytes)
    because = f" in memory mode {mode}" if mode and memory == board.fast else ""
    needed = f"{' + '.join(terms)} = {end:,} bytes" if len(terms) > 1 else f"{terms[0]} bytes"
    raise DoesNotFitError(
        f"the {largest.name.lower()} does not fit {memory.name} of {board.name}{because}: {needed}, but it "
        f"has {memory.size_bytes:,} ({end - memory.size_bytes:,} too many)",
        memory.name,
        largest.name,
    )
