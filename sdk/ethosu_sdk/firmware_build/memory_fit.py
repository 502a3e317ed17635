"""Where a program's memory goes on a board, by Vela's memory modes, whether it fits (pure arithmetic, before anything
is compiled), and what to type when it does not.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.boards import Board, Memory, all_boards
from ethosu_sdk.base.errors import BuildError, SdkError
from ethosu_sdk.base.targets import MemoryAreas, families, suggestion
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.program import protocol
from ethosu_sdk.program.execution_plan import (
    SHARED_ID,
    WORK_ID,
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    List,
    Tensor,
    shares_state,
)
from ethosu_sdk.records import result_files
from ethosu_sdk.records.bundle import compilation_of
from ethosu_sdk.records.compile import Compilation

_AT = ("fast", "bulk")  # AXI interface 0 is that of the memory beside the NPU, 1 that of the large one
WITHOUT_NPU = "Shared_Sram"  # what a program that delegates nothing is laid out as
_SIZE = "--optimise=Size"


@dataclass(frozen=True)
class MemoryMode:
    """One of Vela's memory modes as the firmware has it (memory_modes.toml): which kind of memory (``fast`` or
    ``bulk``) the model and the scratch lie in.

    `fast_scratch` says that part of the scratch lies in fast memory as region 2, `fast_scratch_bytes` how much at
    most; None when the mode has no limit. `settings` is the name of the NPU's register settings.
    """

    name: str
    settings: str
    model: str
    scratch: str
    fast_scratch: bool = False
    fast_scratch_bytes: int | None = None


@functools.cache
def memory_modes() -> dict[str, MemoryMode]:
    """All modes by name, in the order in which one is offered for another."""
    table = tomllib.loads((Path(__file__).parent / "memory_modes.toml").read_text(encoding="utf-8"))
    return {name: MemoryMode(name, **row) for name, row in table.items()}


def memory_mode(name: str | None, areas: MemoryAreas | None = None) -> MemoryMode:
    """The mode called `name` that has things at `areas`; without these the one of Vela's that bears the name, or that
    of a program without delegates for None.

    BuildError for an unknown one, and for areas that the firmware has no settings for: the place of buffers is not
    guessed.
    """
    if areas is not None:
        return _mode_by_areas(name or "", areas)
    mode = memory_modes().get(name or WITHOUT_NPU)
    if mode is None:
        raise BuildError(
            f"the firmware does not know where memory mode '{name}' has its buffers",
            f"--vela-config gives the file that has it; {suggestion(name or '', memory_modes())}",
        )
    return mode


def _mode_by_areas(name: str, areas: MemoryAreas) -> MemoryMode:
    place = (_AT[areas.constants], _AT[areas.arena], areas.cache != areas.arena)
    modes = memory_modes().values()
    alike = next((mode for mode in modes if (mode.model, mode.scratch, mode.fast_scratch) == place), None)
    if alike is None or _AT[areas.cache] != "fast":
        raise BuildError(
            f"memory mode '{name}' has constants at AXI {areas.constants}, arena at AXI {areas.arena} and cache at "
            f"AXI {areas.cache}, for which the firmware has no settings",
            "it has those of Sram_Only (0, 0, 0), Shared_Sram (1, 0, 0) and Dedicated_Sram (1, 1, 0)",
        )
    limit = areas.cache_bytes if alike.fast_scratch else None
    return replace(alike, name=name, fast_scratch_bytes=limit)


POOL_ALIGNMENT = 16
MODEL_ALIGNMENT = 128
MIB = 1 << 20

# The order in which placement.ld and firmware/board/common/sections.ld lay the pools into a memory that they share.
LINK_ORDER = ("MODEL_DATA", "MODEL", "SCRATCH", "FAST_SCRATCH", "PLANNED", "METHOD_POOL", "INPUT_IMAGE")
_SPILLABLE = ("MODEL_DATA", "MODEL", "SCRATCH")  # in the order in which they give way
_ROOMY = (*_SPILLABLE, "FAST_SCRATCH")  # with memories of our own, all do
_DEFAULT_INFERENCES = 64  # inputs of so many inferences fit the input image
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
    """All pools with their memories; `notes` say where this differs from what the memory mode promises, `room` what
    lies elsewhere because the simulated board is smaller than the one that the user named."""

    placements: tuple[Placement, ...]
    notes: tuple[str, ...]
    room: tuple[str, ...] = ()

    def size_of(self, name: str) -> int:
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


# What makes a pool smaller, by its name.
SMALLER = {
    "MODEL": "use a model with fewer or narrower weights: int8 takes a quarter of the bytes of floating point",
    "MODEL_DATA": "use data files with fewer or narrower weights",
    "PLANNED": "planned memory holds the model's state and what the CPU computes: use a smaller input or batch, and "
    "for a decoder a shorter context or caches in int8",
    "SCRATCH": "scratch holds the feature maps of the NPU: use a smaller input",
}


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


def fitting_layout(
    needs: Requirements,
    board: Board,
    inferences: int,
    allowed_modes: Sequence[str],
    *,
    allow_spill: bool,
    npu: str | None = None,
    named: str = "",
) -> Layout:
    """The layout of `needs` on `board`, whose program may be compiled for `allowed_modes` too and computes on `npu`,
    if on any. With the board `named` for :func:`planned_layout`.

    MemoryFitError when it does not fit, with the arithmetic and a suggestion that was planned and does fit.
    """
    try:
        return planned_layout(needs, board, inferences, allow_spill=allow_spill, named=named)
    except DoesNotFitError as error:
        smaller = SMALLER.get(error.largest, "use a smaller model or input")
        less = _fits(replace(needs, scratch_bytes=0, fast_scratch_bytes=0), board, inferences)
        if error.memory != board.fast.name:
            most = _most_inferences(needs, board, inferences)
            advice = f"{most:,} inferences fit one run: give that many inputs at once" if most else smaller
            raise MemoryFitError(error.message, advice, less_scratch=less) from error
        mode, other = _other_mode(needs, board, inferences, allowed_modes)
        spill = _fits(needs, board, inferences, allow_spill=True)
        ways = [_other_data_memory(needs, board, inferences), other]
        if spill:
            ways.append(
                f"put it into {board.bulk.name} with --allow-spill: the outputs stay the same, but memory traffic is "
                f"not that of {needs.memory_mode}"
            )
        ways.append(_other_board(needs, board, inferences, npu))
        advice = "; or ".join(filter(None, ways)) or smaller
        raise MemoryFitError(error.message, advice, mode=mode, spill=spill, less_scratch=less) from error


def _fits(needs: Requirements, board: Board, inferences: int, *, allow_spill: bool = False) -> bool:
    try:
        planned_layout(needs, board, inferences, allow_spill=allow_spill)
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
            result = planned_layout(other, board, inferences)
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
    bulk = board.bulk.name
    if not needs.data_bytes or needs.data_memory == bulk:
        return ""
    fits = _fits(replace(needs, data_memory=bulk), board, inferences)
    return f"give --data-memory {bulk.lower()} for the data files" if fits else ""


def _other_board(needs: Requirements, board: Board, inferences: int, npu: str | None) -> str:
    """Words for the first other board with the NPU on which the program fits; empty without one."""
    for other in all_boards().values():
        if other.name == board.name or (npu is not None and npu not in other.npus):
            continue
        if _fits(needs, other, inferences):
            return (
                f"build it for --board {other.name}, whose {other.fast.name} has "
                f"{other.fast.size_bytes:,} bytes"
            )
    return ""


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


def aligned(size: int, alignment: int = POOL_ALIGNMENT) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    return -(-size // alignment) * alignment


def end_of(rows: Sequence[Placement]) -> int:
    """How far `rows`, which lie in one memory, reach into it when the linker lays them, in bytes."""
    end = 0
    for row in _in_link_order(rows):
        alignment = MODEL_ALIGNMENT if row.name in ("MODEL", "MODEL_DATA") else POOL_ALIGNMENT
        end = aligned(end, alignment) + row.size_bytes
    return end


def _in_link_order(rows: Sequence[Placement]) -> list[Placement]:
    """Those that take memory, as the linker lays them."""
    return sorted((row for row in rows if row.size_bytes), key=lambda row: LINK_ORDER.index(row.name))


def input_image_bytes(input_bytes: tuple[int, ...], inferences: int) -> int:
    """Size in bytes of an input image for so many inferences (its layout: :mod:`ethosu_sdk.program.protocol`)."""
    data = sum(aligned(size) for size in input_bytes)
    table = protocol.INPUT_IMAGE_REFERENCE_BYTES * len(input_bytes)
    return aligned(protocol.INPUT_IMAGE_HEADER_BYTES + table * inferences) + data * inferences


def planned_layout(
    needs: Requirements,
    board: Board,
    inferences: int = 1,
    *,
    allow_spill: bool = False,
    named: str = "",
) -> Layout:
    """Place everything that `needs` asks for, exactly as the linker will.

    The input image holds 64 inferences and at least 1 MiB, less where the memory is short, and in any case
    `inferences`: one firmware serves runs of many lengths. With `allow_spill`, the model and then the scratch leave a
    fast memory that is too small for what the memory mode wants there, and a note says so. If `board` only stands in
    for the board `named`, on which the program fits, all of it may leave that memory. BuildError for an unknown
    memory mode, DoesNotFitError, with the arithmetic, when something does not fit: memory modes are kept to the
    letter.
    """
    notes: list[str] = []
    room: list[str] = []
    rows = [*_model_data(needs, board), *_npu_pools(needs, board)]
    if named:
        rows, moved = _moved(rows, board, _ROOMY)
        room = [
            f"the simulator takes more room for the {_words(row.name)} of {row.used_bytes:,} bytes than "
            f"{board.fast.name} of {board.name} has: {named} has it"
            for row in moved
        ]
    elif allow_spill:
        rows = _spilled(rows, needs, board, notes)
    notes += _unusual_data(rows, needs, board)
    planned = sum(aligned(size) for size in needs.planned_bytes)
    rows.append(Placement("PLANNED", board.bulk, planned, sum(needs.planned_bytes)))
    pool = needs.method_pool_bytes
    rows.append(
        Placement("METHOD_POOL", board.near if pool <= _METHOD_POOL_NEAR_LIMIT else board.bulk, pool, pool)
    )
    rows.append(_input_image(needs, board, rows, inferences))
    for memory in board.memories:
        _check_fit(memory, [row for row in rows if row.memory == memory], needs.memory_mode, board)
    return Layout(tuple(rows), tuple(notes), tuple(room))


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
    rows, moved = _moved(rows, board, _SPILLABLE)
    for moving in moved:
        name = moving.name
        place = (
            f"the {name.lower()} of {moving.used_bytes:,} bytes in {board.fast.name}, which is too small: it lies in "
            f"{board.bulk.name}"
        )
        if name == "MODEL_DATA" and _usual_memory(needs, board) != board.fast:
            notes.append(f"--data-memory asks for {place}")
        else:
            notes.append(
                f"{needs.memory_mode} wants {place}, and traffic figures are not those of {needs.memory_mode}"
            )
    return rows


def _moved(
    rows: list[Placement], board: Board, names: Sequence[str]
) -> tuple[list[Placement], list[Placement]]:
    """`rows` with those of `names` in the large memory that the fast one has no room for, and these as they were."""
    moved = []
    for name in names:
        fast = [row for row in rows if row.memory == board.fast]
        moving = next((row for row in fast if row.name == name), None)
        if moving is not None and end_of(fast) > board.fast.size_bytes:
            rows = [replace(row, memory=board.bulk) if row is moving else row for row in rows]
            moved.append(moving)
    return rows, moved


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def _input_image(needs: Requirements, board: Board, others: list[Placement], inferences: int) -> Placement:
    preferred_bytes = max(MIB, input_image_bytes(needs.input_bytes, _DEFAULT_INFERENCES))
    used = aligned(end_of([row for row in others if row.memory == board.bulk]))
    left = (board.bulk.size_bytes - used) // POOL_ALIGNMENT * POOL_ALIGNMENT
    least = input_image_bytes(needs.input_bytes, inferences) + aligned(needs.extra_image_bytes)
    return Placement("INPUT_IMAGE", board.bulk, max(least, min(preferred_bytes, left)), least)


def _check_fit(memory: Memory, rows: list[Placement], mode: str | None, board: Board) -> None:
    end = end_of(rows)
    if end <= memory.size_bytes:
        return
    present = _in_link_order(rows)
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


@dataclass(frozen=True)
class Buffer:
    """A planned buffer: its offset in the pool and its size in bytes."""

    offset: int
    size_bytes: int


@dataclass(frozen=True)
class MethodMemory:
    """What a method has: the buffers by memory id from 1, room for the interpreter's tables, delegates."""

    name: str
    buffers: tuple[Buffer, ...]
    method_pool_bytes: int
    delegates: int


def memory_of_methods(plans: Sequence[ExecutionPlan]) -> tuple[tuple[MethodMemory, ...], tuple[int, ...]]:
    """The memory of the methods `plans`, which are all loaded, and the sizes of the planned buffers in their order.

    Where they share their state, they also share the memory that they compute in: one runs after the other.
    """
    shared = shares_state(plans)
    planned: list[int] = []
    if shared:
        planned = [
            max(row.non_const_buffer_sizes[number] for row in plans) for number in (WORK_ID, SHARED_ID)
        ]
    methods = []
    for plan in plans:
        sizes = plan.non_const_buffer_sizes[1:]  # ExecuTorch reserves the first
        first = 0 if shared else len(planned)
        if not shared:
            planned.extend(sizes)
        offsets = list(itertools.accumulate(map(aligned, planned), initial=0))[first:-1]
        buffers = tuple(Buffer(offset, size) for offset, size in zip(offsets, sizes, strict=True))
        methods.append(MethodMemory(plan.name, buffers, method_pool_bytes(plan), len(plan.delegates)))
    return tuple(methods), tuple(planned)


def method_pool_bytes(plan: ExecutionPlan) -> int:
    """Bytes of the method pool that suffice for `plan`, a multiple of 16.

    It is an upper bound for the memory that firmware/runtime needs to load a method. The firmware reports what it
    really took (`memory` record ``method_pool``); a test compares the two.
    """
    tensors = [value for value in plan.values if isinstance(value, Tensor)]
    items = sum(len(value.items) for value in plan.values if isinstance(value, List))
    calls = (row for row in plan.instructions if isinstance(row, KernelCall | DelegateCall))
    # Sizes on the 32-bit target with room for alignment, and half as much again for what the runtime may grow to.
    return aligned(
        512
        + 36 * len(plan.values)
        + 40 * len(tensors)
        + 6 * sum(len(tensor.sizes) for tensor in tensors)
        + 6 * items
        + 24 * len(plan.operators)
        + 6 * max((len(row.args) for row in calls), default=0)
    )


@contextlib.contextmanager
def advice_added(path: Path, *, compiled_here: bool) -> Iterator[None]:
    """Add commands to the hint of a MemoryFitError from the block, which is about the program at `path`.

    With `compiled_here` the command at hand compiles the program itself, and takes the options of `compile`.
    """
    try:
        yield
    except MemoryFitError as error:
        remedies: list[tuple[str, ...]] = []
        if error.mode and compiled_here:
            remedies.append(("--memory-mode", error.mode))
        if error.spill:
            remedies.append(("--allow-spill",))
        hints = [error.hint]
        # The record may be damaged, or name a file whose name no file system takes.
        with contextlib.suppress(SdkError, OSError):
            record = compilation_of(result_files.compile_record_path(path), filesystem.sha256_file(path))
            if record is not None and _has_model(record):
                hints += _other_ways(path, record, error, compiled_here=compiled_here)
        raise BuildError(error.message, "\n".join(filter(None, hints)), remedies=tuple(remedies)) from error


def _has_model(record: Compilation) -> bool:
    """Whether the model is there: the record has the names of files, not their folders."""
    spec = parse_model_spec(record.source)
    return spec.path is None or spec.path.is_file()


def _other_ways(
    path: Path, record: Compilation, error: MemoryFitError, *, compiled_here: bool
) -> Iterator[str]:
    """What to try with the program that `compile` made with `record`: Vela's other goal, another memory mode."""
    if error.less_scratch and record.delegates and _SIZE not in record.options.vela_flags:
        yield (
            f"--extra-vela-flag={_SIZE} has Vela schedule for the least SRAM; `ethosu-sdk advise "
            f"{shlex.quote(record.source)} --try` tries that and other changes, and shows which fit"
        )
    target = record.target
    if compiled_here or not error.mode or target is None or any(result_files.recompile_files(record)):
        return
    if target.system_config in families()[target.npu].system_configs:
        again = result_files.recompile_command(record, "-o", str(path.parent), memory_mode=error.mode)
        yield f"try: {again}, then the same again"
