"""The hazard checker on what Vela compiled and was then broken on purpose. In test_models.py it finds nothing."""

import math
import struct
from collections.abc import Iterator

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards import Conflict, Hazard, HazardKind, check
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Output
from ethosu_sdk.npu.program import steps
from ethosu_sdk.npu.stream.registers import Command
from ethosu_sdk.npu.vela_blocks import parse
from tests.conformance.conftest import Corpus
from tests.conformance.selection import TARGETS, Pair

pytestmark = pytest.mark.torch

WITHOUT_EFFECT = struct.pack("<I", 0x013)  # NPU_OP_PMU_MASK: in place of a wait, so that offsets stay
SET_BLOCKDEP = 0x12F
MOST = {"u55": 3, "u85": 7}  # the largest BLOCKDEP
ALL_TARGETS = (*TARGETS["u55"], *TARGETS["u85"])
ONE_PER_FAMILY = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
WAITS = {"OP_DMA_WAIT": HazardKind.DMA_WAIT, "OP_KERNEL_WAIT": HazardKind.KERNEL_WAIT}
Stream = tuple[bytes, NpuConfig]


def streams(corpus: Corpus, pair: Pair) -> Iterator[Stream]:
    """The command streams of a model, and what they are made for."""
    delegates = corpus(pair)
    assert delegates, "nothing of the model was delegated"
    for delegate in delegates:
        blocks = parse(delegate.payload)
        yield bytes(blocks.command_stream), NpuConfig.from_word(blocks.config_word)


def on(targets: tuple[str, ...], *models: str) -> pytest.MarkDecorator:
    """The parameter `pair`: each model, as GROUP/NAME, on each target."""
    found = [Pair(*model.split("/"), target) for model in models for target in targets]
    return pytest.mark.parametrize("pair", found, ids=str)


def waits(stream: Stream) -> list[Command]:
    return [command for command, _ in steps(*stream) if command.type.name in WAITS]


def without(stream: Stream, wait: Command) -> tuple[Hazard, ...]:
    """The hazards when a wait has no effect."""
    words, config = stream
    return check(words[: wait.offset] + WITHOUT_EFFECT + words[wait.offset + 4 :], config)


def with_blockdep(stream: Stream, op: BlockOp, blockdep: int) -> tuple[Hazard, ...]:
    """The hazards when an operation has another BLOCKDEP."""
    words, config = stream
    raised, restored = (struct.pack("<I", value << 16 | SET_BLOCKDEP) for value in (blockdep, op.blockdep))
    at = op.offset
    return check(words[:at] + raised + words[at : at + 4] + restored + words[at + 4 :], config)


def is_handed(front: BlockOp, op: BlockOp) -> bool:
    """Whether the IFM begins where the operation in front begins its OFM."""

    def place(feature_map: FeatureMap) -> tuple[int, int, int | None]:
        return feature_map.region, feature_map.bases[0], feature_map.chain

    return front.ofm.chain is None and not front.is_partial and place(front.ofm) == place(op.ifm)


def neighbours(stream: Stream) -> Iterator[tuple[BlockOp, BlockOp]]:
    """Block operations and those behind them, unless a wait stands between."""
    front = None
    for command, op in steps(*stream):
        if command.type.name == "OP_KERNEL_WAIT":
            front = None
        if isinstance(op, BlockOp):
            if front is not None:
                yield front, op
            front = op


@on(ALL_TARGETS, "elementwise/tables_int16", "networks/pnet")
def test_every_wait_is_missed(corpus: Corpus, pair: Pair) -> None:
    """In these models all of Vela's waits are needed. What is reported is the pair that the wait stands between."""
    for stream in streams(corpus, pair):
        assert waits(stream)
        for wait in waits(stream):
            (hazard,) = without(stream, wait)
            assert hazard.kind in (WAITS[wait.type.name], HazardKind.LUT_OVERWRITTEN)
            assert hazard.earlier is not None
            assert hazard.earlier < wait.offset < hazard.offset


@on(("ethos-u55-64",), "elementwise/mathematics")
def test_a_wait_that_keeps_nothing_apart_is_not_missed(corpus: Corpus, pair: Pair) -> None:
    """Vela takes all tables for one on small parts: it waits for an operation that uses another one as well."""
    needed = []
    for stream in streams(corpus, pair):
        items = list(steps(*stream))
        for (_, front), (wait, _), (_, transfer) in zip(items, items[1:], items[2:], strict=False):
            if wait.type.name == "OP_KERNEL_WAIT" and isinstance(front, BlockOp):
                assert isinstance(transfer, DmaOp)
                assert transfer.target_region is None
                needed.append(bool(without(stream, wait)))
                assert needed[-1] == (front.output.lut is None)
    assert not all(needed)


@on(ALL_TARGETS, "networks/digits_cnn", "networks/mlp")
def test_nothing_begins_while_all_that_it_reads_is_unfinished(corpus: Corpus, pair: Pair) -> None:
    """A BLOCKDEP of at least as many blocks as the operation in front has, by one that reads what that one writes."""
    most = MOST["u85" if pair.target in TARGETS["u85"] else "u55"]
    raised = 0
    for stream in streams(corpus, pair):
        for front, op in neighbours(stream):
            if is_handed(front, op):
                blocks = math.prod(
                    -(-size // step) for size, step in zip(front.shape, front.block, strict=True)
                )
                if blocks <= most and op.blockdep < most:
                    (hazard,) = with_blockdep(stream, op, most)
                    assert (hazard.kind, hazard.conflict) == (HazardKind.BLOCKDEP, Conflict.READ_AFTER_WRITE)
                    assert (hazard.earlier, hazard.offset) == (front.offset, op.offset + 4)
                    raised += 1
    assert raised


@on(TARGETS["u55"], "networks/encoder_layer", "networks/pnet")
def test_blockdep_cannot_be_larger_than_vela_makes_it(corpus: Corpus, pair: Pair) -> None:
    """Where Vela counts blocks, the checker comes to the same count."""
    counted = 0
    for stream in streams(corpus, pair):
        for front, op in neighbours(stream):
            if is_handed(front, op) and 0 < op.blockdep < MOST["u55"]:
                found = with_blockdep(stream, op, op.blockdep + 1)
                assert [hazard.kind for hazard in found] == [HazardKind.BLOCKDEP]
                counted += 1
    assert counted


@on(("ethos-u55-128",), "networks/digits_cnn")
def test_blockdep_may_be_larger_where_nothing_is_handed_on(corpus: Corpus, pair: Pair) -> None:
    """A transpose is many equal pools from one feature map to another. Vela lets none begin before the last ends."""
    raised = 0
    for stream in streams(corpus, pair):
        for front, op in neighbours(stream):
            is_next = front.shape == op.shape and front.ifm.bases[0] < op.ifm.bases[0]
            if front.name == op.name == "POOL_AVERAGE" and is_next and op.blockdep == 0:
                assert not with_blockdep(stream, op, MOST["u55"])
                raised += 1
    assert raised


@on(ONE_PER_FAMILY, "elementwise/tables_int16")
def test_a_table_that_comes_too_early_is_noticed(corpus: Corpus, pair: Pair) -> None:
    """The next table is loaded in front of the operation that still uses the one in its place."""
    moved = 0
    for words, config in streams(corpus, pair):
        ends = [(command.offset + 4, op) for command, op in steps(words, config) if op is not None]
        for (start, _), (used, user), (loaded, transfer) in zip(ends, ends[1:], ends[2:], strict=False):
            if (
                isinstance(user, BlockOp)
                and isinstance(transfer, DmaOp)
                and is_replaced(user.output, transfer)
            ):
                early = words[:start] + words[used:loaded] + words[start:used] + words[loaded:]
                assert HazardKind.LUT_OVERWRITTEN in {hazard.kind for hazard in check(early, config)}
                moved += 1
    assert moved


def is_replaced(output: Output, transfer: DmaOp) -> bool:
    """Whether the transfer goes to where the output stage's look-up table is."""
    in_table = output.lut is not None and transfer.target == output.lut.address
    return in_table and transfer.target_region is None
