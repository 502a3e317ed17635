"""Hazards in hand-written streams: what must be reported, where, and what must not."""

import itertools
from collections.abc import Iterable

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards import Conflict, Hazard, HazardKind, check, table_hazards
from tests.tables import each
from tests.unit.npu.machine import U55_128, U65_256, U85_256
from tests.unit.npu.streams import (
    DMA_START,
    GLOBAL_SCALE,
    NO_STORAGE,
    POOL,
    STOP,
    Setting,
    branch,
    chained,
    copying_pool,
    one,
    precision,
    stream,
    transfer,
)

U55_64 = NpuConfig.for_target("ethos-u55", 64)
SHAPE = (4, 4, 16)
SIZE = 4 * 4 * 16
IN, MIDDLE, OUT = 0x1000, 0x2000, 0x3000
TABLE = 16  # ACTIVATION of Ethos-U55: look-up table 0
TABLE_85 = 4  # of Ethos-U85: table 0, int8 to int8
MAX, REDUCE_SUM, SUM = 0, 2, 3


def pool(
    source: int,
    target: int,
    *changes: dict[str, Setting],
    shape: tuple[int, int, int] = SHAPE,
    blockdep: int = 0,
    mode: int = MAX,
) -> bytes:
    """A pool of one element from `source` to `target` in region 1, in blocks of one row."""
    registers: dict[str, Setting] = {
        **copying_pool(source, target, shape, is_u85=True),
        "OFM_BLK_HEIGHT_M1": 0,
        "IFM_DEPTH_M1": shape[2] - 1,
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_STRIDE": 0,
        "IFM_PAD_TOP": 0,
        "IFM_PAD_BOTTOM": 0,
        "BLOCKDEP": blockdep,
    }
    for change in changes:
        registers |= change
    return stream((registers, POOL, mode), stop=False)


def copy(source: int, target: int, length: int = SIZE, regions: tuple[int, int] = (1, 1)) -> bytes:
    """A DMA transfer; bit 8 of a region stands for the NPU's own memory."""
    registers = transfer((regions[0], source), (regions[1], target), length)
    return stream((registers, DMA_START, 0), stop=False)


def load(config: NpuConfig, slot: int = 0) -> bytes:
    """A DMA transfer of a look-up table of 256 bytes."""
    return copy(0, config.lut_address + 256 * slot, 256, (0, 1 << 8))


def use(slot: int = 0, config: NpuConfig = U55_128) -> dict[str, Setting]:
    """That an operation uses a table."""
    return {"ACTIVATION": TABLE_85 | slot << 5 if config.npu == "ethos-u85" else TABLE + slot}


def dma_wait(count: int = 0) -> bytes:
    return one(0x011, count)


def kernel_wait(count: int = 0) -> bytes:
    return one(0x012, count)


def hazards(*parts: bytes, config: NpuConfig = U55_128) -> tuple[Hazard, ...]:
    return check(b"".join(parts) + STOP, config)


def kinds(*parts: bytes, config: NpuConfig = U55_128) -> list[HazardKind]:
    return [hazard.kind for hazard in hazards(*parts, config=config)]


def ends(parts: Iterable[bytes]) -> list[int]:
    """Offset of the last word of each part: of its operation."""
    return [end - 4 for end in itertools.accumulate(len(part) for part in parts)]


CONFLICTS = [
    (copy(IN, MIDDLE), pool(MIDDLE, OUT), Conflict.READ_AFTER_WRITE),
    (copy(OUT, IN), pool(MIDDLE, OUT), Conflict.WRITE_AFTER_READ),
    (copy(IN, OUT), pool(MIDDLE, OUT), Conflict.WRITE_AFTER_WRITE),
]


MIRRORED = {
    Conflict.READ_AFTER_WRITE: Conflict.WRITE_AFTER_READ,
    Conflict.WRITE_AFTER_READ: Conflict.READ_AFTER_WRITE,
    Conflict.WRITE_AFTER_WRITE: Conflict.WRITE_AFTER_WRITE,
}


@pytest.mark.parametrize(("transfer", "operation", "conflict"), CONFLICTS)
def test_operations_and_transfers_wait_for_each_other(
    transfer: bytes, operation: bytes, conflict: Conflict
) -> None:
    earlier, at = ends([transfer, operation])
    place = MIDDLE if conflict is Conflict.READ_AFTER_WRITE else OUT
    expected = Hazard(HazardKind.DMA_WAIT, at, earlier, conflict, 1, place, place + SIZE)
    assert hazards(transfer, operation) == (expected,)
    assert not hazards(transfer, dma_wait(), operation)
    assert kinds(transfer, kernel_wait(), operation) == [HazardKind.DMA_WAIT]
    found = hazards(operation, transfer)
    assert [(hazard.kind, hazard.conflict) for hazard in found] == [
        (HazardKind.KERNEL_WAIT, MIRRORED[conflict])
    ]
    assert not hazards(operation, kernel_wait(), transfer)
    assert kinds(operation, dma_wait(), transfer) == [HazardKind.KERNEL_WAIT]


def test_transfers_wait_for_each_other_and_blockdep_is_about_reading() -> None:
    first, second = copy(IN, MIDDLE), copy(MIDDLE, OUT)
    assert kinds(first, second) == [HazardKind.DMA_WAIT]
    assert not hazards(first, dma_wait(), second)
    assert not hazards(first, copy(IN, OUT))
    # Blocks pass in order: writing where the operation in front reads or writes is safe.
    assert not hazards(pool(IN, MIDDLE), pool(OUT, MIDDLE, blockdep=3), pool(0x8000, OUT, blockdep=3))


def test_other_regions_neighbours_and_gaps_are_no_conflict() -> None:
    assert not hazards(copy(IN, MIDDLE, regions=(1, 2)), pool(MIDDLE, OUT))
    assert not hazards(copy(IN, MIDDLE - SIZE), pool(MIDDLE, OUT))
    assert not hazards(copy(IN, MIDDLE + SIZE), pool(MIDDLE, OUT))
    assert kinds(copy(IN, MIDDLE + SIZE - 1), pool(MIDDLE, OUT)) == [HazardKind.DMA_WAIT]
    gaps: dict[str, Setting] = {"IFM_STRIDE_Y": 0x100}
    assert not hazards(copy(IN, MIDDLE + 0x40, 0xC0), pool(MIDDLE, OUT, gaps))
    assert kinds(copy(IN, MIDDLE + 0x40, 0xC1), pool(MIDDLE, OUT, gaps)) == [HazardKind.DMA_WAIT]


@pytest.mark.parametrize(("allowed", "found"), [(0, []), (1, []), (2, [HazardKind.DMA_WAIT])])
def test_a_wait_lets_the_newest_go_on(allowed: int, found: list[HazardKind]) -> None:
    transfers = [copy(IN, MIDDLE), copy(IN, 0x8000)]
    assert kinds(*transfers, dma_wait(allowed), pool(MIDDLE, OUT), config=U85_256) == found


@pytest.mark.parametrize(("config", "others"), [(U55_128, 1), (U65_256, 2), (U85_256, 4)])
def test_a_transfer_ends_when_others_fill_its_place(config: NpuConfig, others: int) -> None:
    filling = [copy(IN, 0x8000 + SIZE * n) for n in range(others)]
    assert kinds(copy(IN, MIDDLE), *filling[1:], pool(MIDDLE, OUT), config=config) == [HazardKind.DMA_WAIT]
    assert not hazards(copy(IN, MIDDLE), *filling, pool(MIDDLE, OUT), config=config)


def test_two_operations_are_at_work_and_a_missing_wait_is_reported_once() -> None:
    one_more, two_more = [pool(IN, 0x8000)], [pool(IN, 0x8000), pool(IN, 0x9000)]
    assert kinds(pool(IN, MIDDLE), *one_more, copy(MIDDLE, OUT)) == [HazardKind.KERNEL_WAIT]
    assert not hazards(pool(IN, MIDDLE), *one_more, kernel_wait(1), copy(MIDDLE, OUT))
    assert not hazards(pool(IN, MIDDLE), *two_more, copy(MIDDLE, OUT))
    assert kinds(copy(IN, MIDDLE), pool(MIDDLE, OUT), pool(MIDDLE, 0x8000)) == [HazardKind.DMA_WAIT]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_blockdep_counts_the_blocks_between(rows: int) -> None:
    """Of `rows` blocks each, block i waits for block i: the last `rows` may not be unfinished before the first."""
    shape = (rows, 4, 16)
    front = pool(IN, MIDDLE, shape=shape)
    for blockdep in range(4):
        behind = pool(MIDDLE, OUT, shape=shape, blockdep=blockdep)
        expected = [HazardKind.BLOCKDEP] if blockdep >= rows else []
        assert kinds(front, behind) == expected
        assert not hazards(front, kernel_wait(), behind)
        assert not hazards(front, pool(MIDDLE + 0x800, OUT, shape=shape, blockdep=blockdep))


def test_windows_and_channels_need_more_blocks() -> None:
    """The first row of a kernel of 3x1 with a row of padding needs two of four rows, the second one three."""
    window: dict[str, Setting] = {"KERNEL_HEIGHT_M1": 2, "IFM_PAD_TOP": 1, "IFM_PAD_BOTTOM": 1}
    front = pool(IN, MIDDLE)
    assert not hazards(front, pool(MIDDLE, OUT, window, blockdep=2))
    assert kinds(front, pool(MIDDLE, OUT, window, blockdep=3)) == [HazardKind.BLOCKDEP]
    # 64 channels are written in four blocks and summed in two steps; the second one needs the last two blocks.
    shape = (1, 1, 64)
    single: dict[str, Setting] = {"OFM_DEPTH_M1": 0, "OFM_STRIDE_X": 1, "OFM_STRIDE_Y": 1}
    front = pool(IN, MIDDLE, shape=shape)
    behind = [
        pool(MIDDLE, OUT, single, shape=shape, blockdep=blockdep, mode=REDUCE_SUM) for blockdep in range(4)
    ]
    assert not hazards(front, behind[1])
    assert kinds(front, behind[2]) == [HazardKind.BLOCKDEP]


def test_a_table_must_be_loaded_into_memory_that_is_there() -> None:
    start = U55_128.lut_address
    operation = pool(IN, OUT, use())
    missing = Hazard(
        HazardKind.LUT_NOT_LOADED, len(operation) - 4, None, Conflict.NEVER_WRITTEN, None, start, start + 256
    )
    assert hazards(operation) == (missing,)
    assert not hazards(load(U55_128), dma_wait(), operation, operation)
    assert kinds(load(U55_128), operation) == [HazardKind.DMA_WAIT]
    assert kinds(load(U55_128, slot=1), dma_wait(), operation) == [HazardKind.LUT_NOT_LOADED]
    end = U55_64.own_bytes
    behind = copy(0, end - 128, 256, (0, 1 << 8))
    place = Conflict.NO_MEMORY, None, end, end + 128
    assert hazards(behind, config=U55_64) == (
        Hazard(HazardKind.LUT_BEYOND_MEMORY, len(behind) - 4, None, *place),
    )
    assert not hazards(copy(0, end - 256, 256, (0, 1 << 8)), config=U55_64)


def test_a_table_is_overwritten_only_when_nobody_needs_it() -> None:
    user = [load(U55_128), dma_wait(), pool(IN, OUT, use())]
    assert kinds(*user, load(U55_128)) == [HazardKind.LUT_OVERWRITTEN]
    assert not hazards(*user, kernel_wait(), load(U55_128))
    assert not hazards(*user, load(U55_128, slot=1))
    too_early = [load(U55_128), dma_wait(), load(U55_128), dma_wait(), pool(IN, OUT, use())]
    (found,) = hazards(*too_early)
    assert (found.kind, found.conflict) == (HazardKind.LUT_OVERWRITTEN, Conflict.UNUSED)


def test_operations_without_a_table_spoil_all_on_small_parts() -> None:
    """Where no banks are set aside for tables. An operation with another table leaves the rest alone."""

    def after(*parts: bytes, config: NpuConfig = U55_64) -> list[HazardKind]:
        user = pool(IN, OUT, use())
        return kinds(load(config), dma_wait(), user, *parts, user, config=config)

    assert after(pool(0x8000, 0x9000)) == [HazardKind.LUT_NOT_LOADED]
    assert after(pool(0x8000, 0x9000), config=U55_128) == []
    assert after(load(U55_64, slot=1), dma_wait(), pool(0x8000, 0x9000, use(1))) == []
    assert after(pool(0x8000, 0x9000), kernel_wait(), load(U55_64), dma_wait()) == []
    spoiler = [pool(0x8000, 0x9000, blockdep=1), kernel_wait(), load(U55_64), dma_wait()]
    assert after(*spoiler) == [HazardKind.LUT_OVERWRITTEN]  # before the first user has ended
    assert after(pool(0x8000, 0x9000), load(U55_64), dma_wait()) == [HazardKind.KERNEL_WAIT]


@each(
    ("block", "bank", "covered"),
    [
        ((4, 4, 16), 10, 0),  # 1 KiB of accumulators, twice: in four banks that end where tables begin
        ((4, 4, 16), 11, 256),
        ((4, 4, 16), 12, 256),
        ((8, 4, 32), 6, 0),  # 4 KiB, twice
        ((8, 4, 32), 7, 256),
        ((1, 1, 1), 10, 0),  # the fewest banks are four
        ((1, 1, 1), 11, 256),
    ],
)
def test_accumulators_on_small_parts_must_leave_the_table_alone(
    block: tuple[int, int, int], bank: int, covered: int
) -> None:
    sizes = dict(zip(("HEIGHT", "WIDTH", "DEPTH"), block, strict=True))
    changes: dict[str, Setting] = {f"OFM_BLK_{axis}_M1": size - 1 for axis, size in sizes.items()}
    user = pool(IN, OUT, use(), {**changes, "AB_START": bank})
    parts = [load(U55_64), dma_wait(), user]
    place = Conflict.OWN_BUFFERS, None, U55_64.lut_address, U55_64.lut_address + covered
    at = ends(parts)[-1]
    expected = [Hazard(HazardKind.LUT_OVERWRITTEN, at, None, *place)] if covered else []
    assert list(hazards(*parts, config=U55_64)) == expected
    assert not hazards(load(U55_128), dma_wait(), user)  # which has banks for tables


def test_lost_tables_are_looked_for_on_small_parts_alone() -> None:
    without_waits = [copy(IN, MIDDLE), pool(MIDDLE, OUT), pool(OUT, IN, use())]
    found = table_hazards(b"".join(without_waits) + STOP, U55_64)
    assert [hazard.kind for hazard in found] == [HazardKind.LUT_NOT_LOADED]
    assert table_hazards(b"".join(without_waits) + STOP, U55_128) == ()


def test_sums_that_stay_in_the_accumulators_write_nothing() -> None:
    unstored = precision(8, ofm=True, extra=NO_STORAGE | GLOBAL_SCALE)
    partial: dict[str, Setting] = {"ACC_FORMAT": 1 << 6, "OFM_PRECISION": unstored}
    behind = copy(MIDDLE, OUT)
    assert kinds(pool(IN, MIDDLE, mode=SUM), behind, config=U85_256) == [HazardKind.KERNEL_WAIT]
    assert not hazards(pool(IN, MIDDLE, partial, mode=SUM), behind, config=U85_256)


def test_chains_are_written_before_they_are_read_and_one_operation() -> None:
    write, read = pool(IN, 0, chained("OFM", 1)), pool(0, OUT, chained("IFM", 1))
    assert not hazards(write, read, config=U85_256)
    (found,) = hazards(write, pool(0, OUT, chained("IFM", 2)), config=U85_256)
    assert (found.kind, found.chain) == (HazardKind.CHAIN_NOT_WRITTEN, 2)
    assert kinds(write, pool(IN, 0x8000), read, config=U85_256) == [HazardKind.CHAIN_NOT_WRITTEN]
    # Two may go on after the wait: the chain's first part as well, which reads what the transfer writes.
    chain = [pool(IN, 0, chained("OFM", 1)), pool(0, OUT, chained("IFM", 1))]
    transfer = copy(0x8000, IN)
    assert kinds(*chain, kernel_wait(1), transfer, config=U85_256) == [HazardKind.KERNEL_WAIT]
    assert not hazards(*chain, pool(OUT, 0x9000), kernel_wait(1), transfer, config=U85_256)


def test_branches_are_followed_both_ways() -> None:
    """The table is loaded on one way only."""
    condition = [pool(IN, MIDDLE), kernel_wait()]
    loading = [load(U85_256), dma_wait()]
    user = pool(IN, OUT, use(config=U85_256))
    target = sum(map(len, [*condition, *loading])) + 8
    skipping = [*condition, branch(target, conditional=True), *loading, user]
    assert kinds(*skipping, config=U85_256) == [HazardKind.LUT_NOT_LOADED]
    assert not hazards(*condition, *loading, user, config=U85_256)


@pytest.mark.parametrize(("conditional", "found"), [(False, []), (True, [HazardKind.DMA_WAIT])])
def test_nothing_goes_past_a_branch_that_is_always_taken(conditional: bool, found: list[HazardKind]) -> None:
    transfer, operation = copy(IN, MIDDLE), pool(MIDDLE, OUT)
    jump = branch(len(transfer) + 8 + len(operation), conditional)
    assert kinds(transfer, jump, operation, config=U85_256) == found


def test_loops_and_conditions_wait() -> None:
    again = [copy(IN, MIDDLE), dma_wait(), pool(MIDDLE, OUT)]
    assert not hazards(*again, config=U85_256)
    assert kinds(*again, branch(0), config=U85_256) == [HazardKind.KERNEL_WAIT]
    assert not hazards(*again, kernel_wait(), branch(0), config=U85_256)
    test = pool(IN, OUT)
    (found,) = hazards(test, branch(0, conditional=True), config=U85_256)
    assert (found.kind, found.conflict) == (HazardKind.KERNEL_WAIT, Conflict.RESULT)
    assert not hazards(test, kernel_wait(), branch(0, conditional=True), config=U85_256)


@pytest.mark.parametrize(
    ("hazard", "sentence"),
    [
        (
            Hazard(HazardKind.DMA_WAIT, 0x30, 0x10, Conflict.READ_AFTER_WRITE, 1, 0x2000, 0x2100),
            "missing NPU_OP_DMA_WAIT: the operation at byte 0x30 of the command stream reads what the one at 0x10 "
            "writes, bytes 0x2000 to 0x2100 of region 1",
        ),
        (
            Hazard(HazardKind.LUT_NOT_LOADED, 0x30, None, Conflict.NEVER_WRITTEN, None, 0x100, 0x200),
            "look-up table not loaded: the operation at byte 0x30 of the command stream reads what nothing wrote, "
            "bytes 0x100 to 0x200 of the NPU's own memory",
        ),
        (
            Hazard(HazardKind.CHAIN_NOT_WRITTEN, 0x30, None, Conflict.NEVER_WRITTEN, chain=2),
            "chaining buffer not written: the operation at byte 0x30 of the command stream reads what nothing "
            "wrote, in chaining buffer 2",
        ),
        (
            Hazard(HazardKind.KERNEL_WAIT, 0x30, 0x10, Conflict.RESULT),
            "missing NPU_OP_KERNEL_WAIT: the operation at byte 0x30 of the command stream depends on the result of "
            "the one at 0x10",
        ),
    ],
)
def test_sentences(hazard: Hazard, sentence: str) -> None:
    assert hazard.describe() == sentence
