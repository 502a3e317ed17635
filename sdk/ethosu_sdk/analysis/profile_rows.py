"""The rows of a profile: NPU operations, priced and joined with what `compile` knew, and the CPU's kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import cast

from msgspec.structs import replace

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu import program, timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Kind, Operation as NpuOperation, Stream as ReadRange
from ethosu_sdk.npu.timing import traffic as timing_bursts
from ethosu_sdk.npu.timing.price import OperationProfile, StreamProfile
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.npu.timing.traffic import Transfer
from ethosu_sdk.npu.timing.units import Stream
from ethosu_sdk.program import execution_plan
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall, Tensor
from ethosu_sdk.records import compile as compiling, profile
from ethosu_sdk.records.common import Metric, Source
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Direction, Operation, Port, Shapes, Traffic, TrafficKind
from ethosu_sdk.records.run import Operator, Piece

_CONSTANTS_REGION = 0  # of a command stream
_MOST_TIMES = 8  # that a damaged program may have all of its constants read, each time in other pieces
_BRANCHES = "its command stream branches: which operations run depends on data"


@dataclass
class Constants:
    """The constants of a delegate: weights, biases and scales.

    By the digest of what an operation reads of them, programs are told apart whose command streams are the same.
    """

    content: memoryview
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _bytes_read: int = 0

    def digest(self, operation: NpuOperation) -> str | None:
        """SHA-256 over the digests of what `operation` reads of them; None when it reads none."""
        parts = [self._part(row) for row in _streams(operation) if row.region == _CONSTANTS_REGION]
        if not parts or not self.content or self._bytes_read > _MOST_TIMES * len(self.content):
            return None
        return sha256(b"".join(parts)).hexdigest()

    def _part(self, row: ReadRange) -> bytes:
        key = row.address, row.length
        if key not in self._digests and self._bytes_read <= _MOST_TIMES * len(self.content):
            part = self.content[row.address : row.address + row.length]
            self._bytes_read += len(part)
            self._digests[key] = sha256(part).digest()
        return self._digests.get(key, b"")


def _streams(operation: NpuOperation) -> list[ReadRange]:
    if isinstance(operation, DmaOp):
        is_one = operation.counts == (1, 1) and operation.index is None
        if operation.source_region is None or not is_one:
            return []
        return [ReadRange(operation.source_region, operation.source, operation.length)]
    return [
        *(operation.weights.streams if operation.weights is not None else ()),
        *(operation.scales.streams if operation.scales is not None else ()),
    ]


@dataclass(frozen=True)
class DelegateProfile:
    """A delegate of the program: its profile, or the `reason` why there is none of its operations."""

    index: int
    config: NpuConfig
    system: SystemConfig
    command_bytes: int
    stream: StreamProfile | None
    constants: Constants
    reason: str = ""

    def traffic(self, memory: Memory, direction: Direction, kind: TrafficKind, beats: int) -> Traffic:
        """So many beats to or from `memory`."""
        return Traffic(
            memory=memory.name,
            port=cast(Port, memory.interface),
            direction=direction,
            kind=kind,
            beats=beats,
            bytes=beats * self.config.beat_bytes,
        )

    @property
    def fetched_commands(self) -> Traffic:
        beats = -(-self.command_bytes // self.config.beat_bytes)
        return self.traffic(self.system.command_stream, "read", "commands", beats)


def read_delegate(
    index: int, delegate: execution_plan.Delegate, system: SystemConfig
) -> DelegateProfile | None:
    """The profile of delegate `index`; None when it is not an Ethos-U's."""
    vela = delegate.vela
    if vela is None:
        return None
    config = NpuConfig.from_word(vela.config_word)
    commands = bytes(vela.command_stream)
    stream, reason = None, ""
    try:
        segment = program.described(commands, config)
        if segment.branch is None:
            stream = timing.profile(segment, config, system)
        else:
            reason = _BRANCHES
    except SdkError as error:
        reason = f"its command stream cannot be read: {error}"
    return DelegateProfile(index, config, system, len(commands), stream, Constants(vela.weights), reason)


@dataclass(frozen=True)
class Call:
    """An instruction that computes, and the entries of its calls in the run record."""

    index: int
    instruction: KernelCall | DelegateCall
    ran: Sequence[Operator]


def profiled_operations(
    calls: Sequence[Call],
    plan: ExecutionPlan,
    delegates: Mapping[int, DelegateProfile],
    compiled: Compilation | None,
    pieces: Sequence[Piece],
) -> tuple[Operation, ...]:
    """The rows of `calls`: a kernel, or the operations of a delegate.

    `compiled` is the compile record, if there is one. `pieces` are the jobs that the run cut command streams into: a
    job of several operations stands at the first of them, and of several calls the first one counts.
    """
    known = {} if compiled is None else {row.index: row for row in compiled.delegates}
    jobs = {
        (row.instruction, row.offsets[0]): profile.Job(
            operations=len(row.offsets), cycles=row.cycles, counters=row.counters
        )
        for row in pieces
        if row.call == 0 and row.offsets
    }
    rows: list[Operation] = []
    for call in calls:
        if isinstance(call.instruction, KernelCall):
            rows.append(_kernel(len(rows), call, call.instruction, plan, compiled))
        elif (found := delegates.get(call.instruction.delegate_index)) is not None:
            operations = () if found.stream is None else found.stream.operations
            origins = _origins([row.operation.offset for row in operations], known.get(found.index))
            for operation, origin in zip(operations, origins, strict=True):
                job = jobs.get((call.index, operation.operation.offset))
                rows.append(_npu_operation(len(rows), call, found, operation, origin, job))
    return tuple(rows)


def _kernel(
    index: int, call: Call, instruction: KernelCall, plan: ExecutionPlan, compiled: Compilation | None
) -> Operation:
    """A kernel's calls, with the reason and the line in the model where all of its calls have those in common."""
    name = plan.operators[instruction.op_index].full_name
    outputs = [value for place in instruction.args[-1:] if isinstance(value := plan.values[place], Tensor)]
    sites = next((row.sites for row in (compiled.cpu_operators if compiled else ()) if row.name == name), ())
    site = sites[0] if len(sites) == 1 else None
    return Operation(
        index=index,
        instruction=call.index,
        calls=len(call.ran),
        runs_on="CPU",
        name=name,
        kind="kernel",
        shapes=Shapes(ofm=tuple(outputs[0].sizes)) if outputs else None,
        dtypes=profile.Dtypes(ofm=outputs[0].dtype) if outputs else None,
        reason=None if site is None else site.reason,
        source=None if site is None else site.source,
        instructions=summed_metric([row.instructions for row in call.ran]),
        cpu_cycles=summed_metric([row.cpu_cycles for row in call.ran]),
    )


def summed_metric(figures: Sequence[Metric | None]) -> Metric | None:
    found = [row for row in figures if row is not None]
    if not found or len(found) < len(figures):
        return None
    return replace(found[0], value=sum(row.value for row in found))


def cycles_metric(value: float, source: Source) -> Metric:
    return Metric(value=value, unit="cycles", source=source)


@dataclass(frozen=True)
class _Origin:
    """What Vela scheduled an operation for: number and entry in the compile record, and whether it is the first."""

    number: int
    entry: compiling.Operation
    is_first: bool

    def estimate(self, name: str) -> int | None:
        """Vela's estimate `name` of what it scheduled, at the first operation of that."""
        found = (int(row.value) for row in self.entry.estimates if row.name == name)
        return next(found, None) if self.is_first else None


def _origins(offsets: Sequence[int], known: compiling.Delegate | None) -> Iterator[_Origin | None]:
    """For each operation of a stream what Vela scheduled it for.

    Of many small operations that stand for one (a transpose on Ethos-U55), Vela names the last alone.
    """
    scheduled = () if known is None else known.operations
    by_offset = {offset: number for number, row in enumerate(scheduled) for offset in row.offsets}
    numbers: list[int | None] = []
    following = None
    for offset in reversed(offsets):
        following = by_offset.get(offset, following)
        numbers.append(following)
    seen = set()
    for number in reversed(numbers):
        yield None if number is None else _Origin(number, scheduled[number], number not in seen)
        seen.add(number)


def _npu_operation(
    index: int,
    call: Call,
    found: DelegateProfile,
    row: OperationProfile,
    origin: _Origin | None,
    job: profile.Job | None,
) -> Operation:
    op, price, entry = row.operation, row.price, None if origin is None else origin.entry
    estimated = None if origin is None else origin.estimate("cycles")
    block = None if isinstance(op, DmaOp) else op
    # An operation that runs beside the one before adds fewer cycles than its MAC unit works.
    cycles = max(row.cycles, price.stages.mac)
    return Operation(
        index=index,
        instruction=call.index,
        calls=len(call.ran),
        runs_on="NPU",
        name=op.name,
        kind="dma" if block is None else block.kind.value,
        delegate=found.index,
        offset=op.offset,
        scheduled=None if origin is None else origin.number,
        vela=None if entry is None else entry.vela,
        tosa=None if entry is None else entry.tosa,
        source=None if entry is None else entry.source,
        shapes=None if block is None else _shapes(block),
        dtypes=None if block is None else profile.Dtypes(ifm=block.ifm.dtype.name, ofm=block.ofm.dtype.name),
        constants_sha256=found.constants.digest(op),
        weights=None if block is None else _weights(block),
        bytes=op.counts[0] * op.counts[1] * op.length if isinstance(op, DmaOp) else None,
        macs=price.macs,
        cycles=(
            cycles_metric(row.cycles, "modelled"),
            *(() if estimated is None else (cycles_metric(estimated, "estimated"),)),
        ),
        stages=profile.Stages(
            mac=price.stages.mac,
            output=price.stages.output,
            weight_decoder=price.stages.decoder,
            memory=price.stages.transfer,
        ),
        utilisation=round(price.macs / (cycles * found.config.macs), 4) if cycles else 0.0,
        bound_by=row.memory or row.bound.value,
        traffic=_traffic(row, found),
        # Alive in the arena meanwhile, as Vela states it for all of its NPU operations.
        scratch_bytes=None if origin is None else origin.estimate("staging"),
        job=job,
    )


def _shapes(op: BlockOp) -> Shapes:
    has_kernel = op.kind not in (Kind.ELEMENTWISE, Kind.RESIZE)
    return Shapes(
        ifm=tuple(op.ifm_shape),
        ofm=tuple(op.shape),
        block=tuple(op.block),
        kernel=(op.kernel.height, op.kernel.width) if has_kernel else None,
        stride=(op.kernel.stride_y, op.kernel.stride_x) if has_kernel else None,
    )


def _weights(op: BlockOp) -> profile.Weights | None:
    if op.weights is None or not op.weights.streams:
        return None
    depth = op.ifm_depth if op.takes_all_channels else 1
    return profile.Weights(
        bytes=op.kernel.height * op.kernel.width * op.shape[2] * depth,
        encoded_bytes=sum(stream.length for stream in op.weights.streams),
    )


def _traffic(row: OperationProfile, found: DelegateProfile) -> tuple[Traffic, ...]:
    sums: Counter[tuple[Memory, Direction, TrafficKind]] = Counter()
    for moved in row.price.transfers:
        if moved.region is not None:
            direction: Direction = "write" if moved.stream.is_write else "read"
            sums[found.system.memory(moved.region), direction, moved.stream.value] += moved.beats
    return tuple(found.traffic(*key, beats) for key, beats in sums.items())


def delegate_bursts(found: DelegateProfile, memory: Memory) -> Counter[tuple[Direction, int]]:
    """(direction, bytes of a burst) → bursts of a call of the delegate to or from `memory`."""
    operations = () if found.stream is None else found.stream.operations
    moved = [
        row
        for operation in operations
        for row in operation.price.transfers
        if row.region is not None and found.system.memory(row.region) == memory
    ]
    sums: Counter[tuple[Direction, int]] = Counter()
    directions: tuple[Direction, ...] = ("read", "write")
    for direction in directions:
        rows = [row for row in moved if row.stream.is_write is (direction == "write")]
        if memory == found.system.command_stream and direction == "read":
            rows.append(Transfer(None, Stream.COPY, found.fetched_commands.beats))
        for beats, count in timing_bursts.bursts(rows, memory, found.config).items():
            sums[direction, beats * found.config.beat_bytes] += count
    return sums
