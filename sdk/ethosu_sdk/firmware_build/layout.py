"""Where a model's memory goes, and whether it fits: pure arithmetic, before anything is compiled.

Vela's memory modes say what lies beside the NPU (Vela 5.1.0, vela.ini): Sram_Only weights and scratch,
Shared_Sram the scratch, Dedicated_Sram a part of the scratch (region 2, the fast scratch).
"""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build.boards import Board, Memory

POOL_ALIGNMENT = 16
MODEL_ALIGNMENT = 128
MIB = 1 << 20

# The most bytes of region 2 that Vela gives a program, which no payload states: arena_cache_size of the memory modes
# in vela.ini. The plain Dedicated_Sram has none there: Vela may use the whole SRAM.
_FAST_SCRATCH_BYTES = {
    "Dedicated_Sram_256KB": 256 << 10,
    "Dedicated_Sram_384KB": 384 << 10,
    "Dedicated_Sram_512KB": 512 << 10,
}
_DEFAULT_INFERENCES = 64  # inputs of so many inferences fit the input image
_MIN_INPUT_IMAGE_BYTES = MIB
_INPUT_IMAGE_HEADER_BYTES = 64
_INPUT_REFERENCE_BYTES = 8
_METHOD_POOL_DTCM_LIMIT = 256 << 10  # the rest of DTCM is for the stack, .data and .bss


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


def aligned(size: int, alignment: int = POOL_ALIGNMENT) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def input_image_bytes(input_bytes: tuple[int, ...], inferences: int) -> int:
    """Size in bytes of an input image for so many inferences (report/protocol.py states its layout)."""
    data = sum(aligned(size) for size in input_bytes)
    table = _INPUT_REFERENCE_BYTES * len(input_bytes)
    return aligned(_INPUT_IMAGE_HEADER_BYTES + table * inferences) + data * inferences


def plan(needs: Requirements, board: Board, inferences: int = 1) -> Layout:
    """Place everything that `needs` asks for.

    The input image holds 64 inferences and at least 1 MiB, less where the memory is short, and in any case
    `inferences`: one firmware serves runs of many lengths. BuildError, with the arithmetic, when something
    does not fit.
    """
    notes: list[str] = []
    rows = [_method_pool(needs, board), *_npu_pools(needs, board, notes)]
    planned = sum(aligned(size) for size in needs.planned_bytes)
    rows.append(Placement("PLANNED", board.bulk, planned, sum(needs.planned_bytes)))
    rows.append(_input_image(needs, board, rows, inferences))
    for memory in board.memories:
        _check_fit(memory, [row for row in rows if row.memory == memory])
    return Layout(tuple(rows), tuple(notes))


def _method_pool(needs: Requirements, board: Board) -> Placement:
    small = needs.method_pool_bytes <= _METHOD_POOL_DTCM_LIMIT
    size = needs.method_pool_bytes
    return Placement("METHOD_POOL", board.tightly_coupled if small else board.bulk, size, size)


def _npu_pools(needs: Requirements, board: Board, notes: list[str]) -> list[Placement]:
    """MODEL, SCRATCH and FAST_SCRATCH, as the memory mode has them."""
    scratch, model = aligned(needs.scratch_bytes), aligned(needs.model_bytes, MODEL_ALIGNMENT)
    mode = needs.memory_mode or ""
    scratch_memory, model_memory = board.fast, board.bulk
    fast_bytes = needs.fast_scratch_bytes or 0
    if mode.startswith("Dedicated_Sram"):
        scratch_memory = board.bulk
        if needs.fast_scratch_bytes is None:
            fast_bytes = _FAST_SCRATCH_BYTES.get(mode, board.fast.size_bytes)
    elif scratch > board.fast.size_bytes:
        scratch_memory = board.bulk
        notes.append(
            f"{mode} wants the scratch of {scratch:,} bytes in {board.fast.name}, which has "
            f"{board.fast.size_bytes:,}: it lies in {board.bulk.name}, and traffic figures are not those of "
            f"{mode}"
        )
    if mode == "Sram_Only":
        if scratch_memory == board.fast and scratch + model <= board.fast.size_bytes:
            model_memory = board.fast
        else:
            notes.append(
                f"Sram_Only wants the model of {model:,} bytes in {board.fast.name} beside the scratch of "
                f"{scratch:,}: it lies in {board.bulk.name}, and traffic figures are not those of Sram_Only"
            )
    return [
        Placement("MODEL", model_memory, model, needs.model_bytes),
        Placement("SCRATCH", scratch_memory, scratch, needs.scratch_bytes),
        Placement("FAST_SCRATCH", board.fast, aligned(fast_bytes), fast_bytes),
    ]


def _input_image(needs: Requirements, board: Board, others: list[Placement], inferences: int) -> Placement:
    wish = max(_MIN_INPUT_IMAGE_BYTES, input_image_bytes(needs.input_bytes, _DEFAULT_INFERENCES))
    used = sum(aligned(row.size_bytes, MODEL_ALIGNMENT) for row in others if row.memory == board.bulk)
    left = (board.bulk.size_bytes - used) // POOL_ALIGNMENT * POOL_ALIGNMENT
    least = input_image_bytes(needs.input_bytes, inferences)
    return Placement("INPUT_IMAGE", board.bulk, max(least, min(wish, left)), least)


def _check_fit(memory: Memory, rows: list[Placement]) -> None:
    # Pools are aligned to less than the model: counting all with the model's alignment is never too little.
    total = sum(aligned(row.size_bytes, MODEL_ALIGNMENT) for row in rows)
    if total <= memory.size_bytes:
        return
    terms = " + ".join(f"{row.name.lower()} {row.size_bytes:,}" for row in rows if row.size_bytes)
    raise BuildError(
        f"the model does not fit {memory.name}: {terms} = {total:,} bytes, but it has {memory.size_bytes:,} "
        f"({total - memory.size_bytes:,} too many)",
        "use a smaller model or input, another memory mode, or fewer inferences in one run",
    )
