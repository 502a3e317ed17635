"""The rows of a profile: NPU operations, priced and joined with what `compile` knew, and the CPU's kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.npu import program, timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Kind, Operation as NpuOperation, Stream as ReadRange
from ethosu_sdk.npu.timing import traffic as timing_bursts
from ethosu_sdk.npu.timing.price import OperationProfile, StreamProfile
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.npu.timing.traffic import Transfer
from ethosu_sdk.npu.timing.units import Stream
from ethosu_sdk.program import execution_plan
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall, Tensor
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.compile import Compilation, Delegate, Operation
from ethosu_sdk.records.profile import Job
from ethosu_sdk.records.run import Operator, Piece
from ethosu_sdk.simulate.simulation import MODELLED

# ---- steps.profile.constants
# What an operation reads of its program's weights, biases and scales, as a digest: by it two programs are told
# apart
# where their streams are the same.

_REGION = 0  # of a command stream: the program's constants
_MOST_TIMES = 8  # that a damaged program may have all of its constants read, each time in other pieces


def metric(value: int, unit: str, source: str) -> Record:
    """A figure with its `source`."""
    return {"value": value, "unit": unit, "source": source}


@dataclass
class Constants:
    """The constants of a delegate."""

    content: memoryview
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _bytes_read: int = 0

    def digest(self, operation: NpuOperation) -> str | None:
        """SHA-256 over the digests of what `operation` reads of them; None when it reads none."""
        parts = [self._part(row) for row in _streams(operation) if row.region == _REGION]
        if not parts or self._bytes_read > _MOST_TIMES * len(self.content):
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


# ---- steps.profile.cpu_rows
# The rows of what runs on the CPU: the program's kernels, in the order of its instructions.


def cpu_row(
    call: KernelCall, plan: ExecutionPlan, ran: Sequence[Operator], compiled: Compilation | None
) -> Record:
    """A kernel's calls. `ran` are their entries in the run record; `compiled` is the compile record, if there is
    one."""
    name = plan.operators[call.op_index].full_name
    outputs = [value for index in call.args[-1:] if isinstance(value := plan.values[index], Tensor)]
    return {
        "runs_on": "CPU",
        "name": name,
        "kind": "kernel",
        **({"shapes": {"ofm": list(outputs[0].sizes)}} if outputs else {}),
        **({"dtypes": {"ofm": outputs[0].dtype}} if outputs else {}),
        **_cpu_origin(name, compiled),
        **summed_figures("instructions", [row.instructions for row in ran]),
        **summed_figures("cpu_cycles", [row.cpu_cycles for row in ran]),
    }


def summed_figures(name: str, figures: Sequence[Metric | None]) -> Record:
    """The member `name` with the sum of the `figures` of all calls; nothing unless each has one."""
    found = [row for row in figures if row is not None]
    if not found or len(found) < len(figures):
        return {}
    return {name: {**found[0].to_json(), "value": sum(row.value for row in found)}}


def _cpu_origin(name: str, compiled: Compilation | None) -> Record:
    """Why an operator is on the CPU and its line in the model, where all of its calls have those in common."""
    for operator in compiled.cpu_operators if compiled is not None else ():
        if operator.name == name and len(operator.sites) == 1:
            site = operator.sites[0].to_json()
            return {key: site[key] for key in ("reason", "source") if key in site}
    return {}


# ---- steps.profile.npu_rows
# The rows of NPU operations: the command stream of a delegate, priced, and joined with what `compile` knew of it.

_Origin = tuple[int, Operation, bool]
ESTIMATED = "estimated"  # by Vela
_BRANCHES = "its command stream branches: which operations run depends on data"


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


def operation_rows(found: DelegateProfile, known: Delegate | None) -> Iterator[Record]:
    """The operations of a delegate. `known` is its entry in the compile record, if there is one."""
    operations = () if found.stream is None else found.stream.operations
    origins = _origins([row.operation.offset for row in operations], known)
    for operation, origin in zip(operations, origins, strict=True):
        yield {
            "runs_on": "NPU",
            "name": operation.operation.name,
            "delegate": found.index,
            "offset": operation.operation.offset,
            **_operation_origin(origin),
            **_shapes(operation),
            **_constants(operation, found),
            "macs": operation.price.macs,
            "cycles": [
                metric(operation.cycles, "cycles", MODELLED),
                *(metric(value, "cycles", ESTIMATED) for value in _estimates(origin, "cycles")),
            ],
            **_figures(operation, found),
            "traffic": _traffic(operation, found),
            **_scratch(origin),
        }


def rows_with_jobs(rows: Iterable[Record], pieces: Sequence[Piece]) -> list[Record]:
    """`rows` with what the counters said of the job that an operation was, where the run cut command streams.

    A job of several operations stands at the first of them. Of several calls the first one counts.
    """
    jobs = {(row.instruction, row.offsets[0]): row for row in pieces if row.call == 0 and row.offsets}
    found = ((row, jobs.get((row["instruction"], row.get("offset", -1)))) for row in rows)
    return [row if job is None else {**row, "job": _job(job)} for row, job in found]


def _job(piece: Piece) -> Record:
    return Job(operations=len(piece.offsets), cycles=piece.cycles, counters=piece.counters).to_json()


def fetched_commands(found: DelegateProfile) -> Record:
    """The traffic of the command stream itself."""
    beats = -(-found.command_bytes // found.config.beat_bytes)
    return _moved(found, found.system.command_stream, "read", "commands", beats)


def delegate_bursts(found: DelegateProfile, memory: Memory) -> Counter[tuple[str, int]]:
    """(direction, bytes of a burst) → bursts of a call of the delegate to or from `memory`."""
    beat = found.config.beat_bytes
    operations = () if found.stream is None else found.stream.operations
    moved = [
        row
        for operation in operations
        for row in operation.price.transfers
        if row.region is not None and found.system.memory(row.region) == memory
    ]
    sums: Counter[tuple[str, int]] = Counter()
    for direction, is_write in (("read", False), ("write", True)):
        rows = [row for row in moved if row.stream.is_write is is_write]
        if memory == found.system.command_stream and not is_write:
            rows.append(Transfer(None, Stream.COPY, fetched_commands(found)["beats"]))
        for beats, count in timing_bursts.bursts(rows, memory, found.config).items():
            sums[direction, beats * beat] += count
    return sums


def _origins(offsets: Sequence[int], known: Delegate | None) -> list[_Origin | None]:
    """For each operation of a stream the number and entry of what Vela scheduled it for, and whether it is its first.

    Of many small operations that stand for one (a transpose on Ethos-U55), Vela names the last alone.
    """
    scheduled = () if known is None else known.operations
    by_offset = {offset: number for number, row in enumerate(scheduled) for offset in row.offsets}
    numbers: list[int | None] = []
    following = None
    for offset in reversed(offsets):
        following = by_offset.get(offset, following)
        numbers.append(following)
    numbers.reverse()
    first: dict[int | None, int] = {}
    for place, number in enumerate(numbers):
        first.setdefault(number, place)
    return [
        None if number is None else (number, scheduled[number], first[number] == place)
        for place, number in enumerate(numbers)
    ]


def _operation_origin(origin: _Origin | None) -> Record:
    """What `compile` knew of the operation that Vela scheduled."""
    if origin is None:
        return {}
    number, row, _ = origin
    content = row.to_json()
    return {
        "scheduled": number,
        **{key: content[key] for key in ("vela", "tosa", "source") if key in content},
    }


def _estimates(origin: _Origin | None, name: str) -> list[int]:
    """Vela's estimates called `name` of what it scheduled, at the first operation of that."""
    if origin is None or not origin[2]:
        return []
    return [int(row.value) for row in origin[1].estimates if row.name == name]


def _scratch(origin: _Origin | None) -> Record:
    """What is alive in the arena while the operation runs, as Vela states it for all of its NPU operations."""
    found = _estimates(origin, "staging")
    return {"scratch_bytes": found[0]} if found else {}


def _shapes(row: OperationProfile) -> Record:
    op = row.operation
    if isinstance(op, DmaOp):
        return {"kind": "dma", "bytes": op.counts[0] * op.counts[1] * op.length}
    shapes: Record = {"ifm": list(op.ifm_shape), "ofm": list(op.shape), "block": list(op.block)}
    if op.kind not in (Kind.ELEMENTWISE, Kind.RESIZE):
        shapes["kernel"] = [op.kernel.height, op.kernel.width]
        shapes["stride"] = [op.kernel.stride_y, op.kernel.stride_x]
    dtypes = {"ifm": op.ifm.dtype.name, "ofm": op.ofm.dtype.name}
    return {"kind": op.kind.value, "shapes": shapes, "dtypes": dtypes, **_weights(op)}


def _constants(row: OperationProfile, found: DelegateProfile) -> Record:
    digest = found.constants.digest(row.operation)
    return {} if digest is None else {"constants_sha256": digest}


def _weights(op: BlockOp) -> Record:
    if op.weights is None or not op.weights.streams:
        return {}
    depth = op.ifm_depth if op.takes_all_channels else 1
    return {
        "weights": {
            "bytes": op.kernel.height * op.kernel.width * op.shape[2] * depth,
            "encoded_bytes": sum(stream.length for stream in op.weights.streams),
        }
    }


def _figures(row: OperationProfile, found: DelegateProfile) -> Record:
    stages = row.price.stages
    # An operation that runs beside the one before adds fewer cycles than its MAC unit works.
    cycles = max(row.cycles, stages.mac)
    return {
        "stages": {
            "mac": stages.mac,
            "output": stages.output,
            "weight_decoder": stages.decoder,
            "memory": stages.transfer,
        },
        "utilisation": round(row.price.macs / (cycles * found.config.macs), 4) if cycles else 0.0,
        "bound_by": row.memory or row.bound.value,
    }


def _traffic(row: OperationProfile, found: DelegateProfile) -> list[Record]:
    sums: dict[tuple[Memory, str, str], int] = {}
    for moved in row.price.transfers:
        if moved.region is not None:
            direction = "write" if moved.stream.is_write else "read"
            key = (found.system.memory(moved.region), direction, moved.stream.value)
            sums[key] = sums.get(key, 0) + moved.beats
    return [
        _moved(found, memory, direction, kind, beats) for (memory, direction, kind), beats in sums.items()
    ]


def _moved(found: DelegateProfile, memory: Memory, direction: str, kind: str, beats: int) -> Record:
    return {
        "memory": memory.name,
        "port": memory.interface,
        "direction": direction,
        "kind": kind,
        "beats": beats,
        "bytes": beats * found.config.beat_bytes,
    }


def profiled_memories(found: Sequence[DelegateProfile]) -> list[Memory]:
    """Every memory of the system that the delegates are priced with, each once."""
    systems = [row.system for row in found]
    return list(dict.fromkeys(memory for row in systems for memory in (row.arena, row.cache, row.constants)))
