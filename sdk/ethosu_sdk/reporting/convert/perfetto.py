"""A trace for Perfetto's viewer: the NPU's units as tracks, operations one behind the other, in modelled cycles.

Where the profile has the time of an inference, a second process has it: a track for the CPU and one for the NPU.

A profile knows how long a unit works for an operation, and not when within it. A unit's slice begins with the
operation, or where the unit is through with the one before; each slice says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ethosu_sdk.base import plain_text, tools
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.records import kinds, wording
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.profile import Operation, Profile, cycles as cycles_of
from ethosu_sdk.records.time_line import Clock, TimeLine
from ethosu_sdk.reporting.convert.conversion_inputs import ConversionInputs

KINDS = (kinds.PROFILE.schema,)
LEFT_OUT = (
    "time on the CPU in the tracks of the NPU's units: its operators are instants there, with the instructions that "
    "were counted",
    "when within an operation a unit works, and the order of repeated calls: a slice holds all calls of an operation",
    "fractions of a nanosecond, in which Perfetto counts",
)
_PLACED = "from the operation's begin, or when the unit is free; when within the operation is not known"
_UNITS = {
    "mac": "MAC unit",
    "output": "output unit",
    "weight_decoder": "weight decoder",
    "memory": "busiest memory",
}
_OPERATIONS, _DMA, _CPU = "operations", "DMA", "operators on the CPU"
_PROCESS = 1  # identifiers of tracks; those of the units follow
_INFERENCE = 1 << 32  # the same of the time line
_NS_PER_S = 10**9
_FURTHEST_NS = 1 << 63


@dataclass(frozen=True)
class _Slice:
    track: str
    name: str
    begin: int
    end: int | None
    facts: dict[str, Any]


@dataclass
class _Clock:
    now: int = 0
    busy: dict[str, int] = field(default_factory=dict)  # until when each of the NPU's units works


def to_perfetto(inputs: ConversionInputs) -> bytes:
    """The profile of `inputs` as Perfetto's protobuf. InputError when its cycles have no clock."""
    profile = inputs.the(kinds.PROFILE)
    if profile.clock is None:
        raise InputError(
            f"{inputs.path} has no NPU clock: its cycles cannot be converted to time",
            "`ethosu-sdk profile RUN_DIR --clock-mhz MHZ` sets one",
        )
    slices = sorted(_slices(profile), key=lambda row: row.begin)
    if not slices:
        raise InputError(f"{inputs.path} has no operations: there is nothing to trace")
    nanoseconds = _NS_PER_S / Fraction(profile.clock.hz)
    if max(row.end or row.begin for row in slices) * nanoseconds >= _FURTHEST_NS:
        raise InputError(f"{inputs.path} lasts longer than a trace can record: more than 2^63 ns")
    writer = _Writer(profile, profile.clock)
    writer.add(slices, nanoseconds)
    if profile.time is not None:
        writer.add_inference(profile.time, profile.caveat)
    return writer.content()


def _slices(profile: Profile) -> Iterator[_Slice]:
    clock = _Clock()
    starts = {row.index: row for row in profile.delegates}
    for row in profile.operations:
        if row.runs_on == "CPU" or row.delegate is None:
            yield _Slice(_CPU, row.name, clock.now, None, _facts(row))
            continue
        delegate = starts.pop(row.delegate, None)
        if delegate is not None:
            # What a delegate takes before its first operation, in all of its calls.
            begin, cycles = clock.now, (delegate.start_cycles or 0) * delegate.calls
            clock.now += cycles
            facts = {"calls": delegate.calls, "cycles": cycles, "source": "modelled"}
            yield _Slice(_OPERATIONS, f"delegate {delegate.index} starts", begin, clock.now, facts)
        yield from _operation(row, clock)


def _operation(row: Operation, clock: _Clock) -> Iterator[_Slice]:
    begin, cycles = clock.now, cycles_of(row.cycles, "modelled")
    if cycles is None:
        return
    clock.now += cycles * row.calls
    facts, name = _facts(row), row.operator or row.name
    yield _Slice(_OPERATIONS, name, begin, clock.now, {**facts, "cycles": cycles, "source": "modelled"})
    if row.kind == "dma":
        yield _Slice(_DMA, name, begin, clock.now, facts)
    for stage, unit in _UNITS.items():
        busy = getattr(row.busy, stage) * row.calls
        if busy:
            start = max(begin, clock.busy.get(unit, 0))
            clock.busy[unit] = start + busy
            placed = {"operation": row.index, "cycles": busy, "source": "modelled", "placed": _PLACED}
            yield _Slice(unit, name, start, start + busy, placed)
    ports: dict[str, dict[str, Any]] = {}  # bytes through each memory's port, by direction and kind
    for part in row.traffic or ():
        entry = ports.setdefault(part.memory, {"port": part.port, "source": "modelled"})
        key = f"{part.direction} {part.kind}, bytes"
        entry[key] = entry.get(key, 0) + part.bytes * row.calls
    for memory, moved in ports.items():
        yield _Slice(f"{memory}, port {moved['port']}", name, begin, clock.now, moved)


def _facts(row: Operation) -> dict[str, Any]:
    source = row.source or SourceLine(module="")
    facts = {
        "operation": row.index,
        "instruction": row.instruction,
        "calls": row.calls,
        "name": row.name,
        "delegate": row.delegate,
        "offset": row.offset,
        "macs": row.macs,
        "bytes": row.bytes,
        "bound_by": row.bound_by,
        "reason": row.reason,
        "estimated cycles": cycles_of(row.cycles, "estimated"),
        "counted instructions": int(row.instructions.value) if row.instructions is not None else None,
        "model file": source.file,
        "model line": source.line,
        "model function": source.function,
        "model module": source.module or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


class _Writer:
    """Perfetto's packets, written by its own package."""

    def __init__(self, profile: Profile, clock: Clock) -> None:
        builder = tools.load_extra("perfetto.trace_builder.proto_builder", tools.FORMATS)
        self._messages = tools.load_extra("perfetto.protos.perfetto.trace.perfetto_trace_pb2", tools.FORMATS)
        self._trace = builder.TraceProtoBuilder()
        self._tracks: dict[str, int] = {}
        target = profile.target
        npu = f"{target.npu}-{target.macs}" if target is not None else "program"
        worth = "" if profile.simulator is None else profile.simulator.fidelity
        facts = (f"{clock.hz:g} Hz, {clock.source}", worth)
        self._process(_PROCESS, f"{npu}: {profile.model.file}", facts)

    def add(self, slices: list[_Slice], nanoseconds: Fraction) -> None:
        for name in (_OPERATIONS, *_UNITS.values(), _DMA, *sorted({row.track for row in slices})):
            if name not in self._tracks and any(row.track == name for row in slices):
                self._track(name)
        for row in slices:
            event = self._messages.TrackEvent
            kind = event.TYPE_INSTANT if row.end is None else event.TYPE_SLICE_BEGIN
            self._event(row.track, kind, round(row.begin * nanoseconds), row)
            if row.end is not None:
                self._event(row.track, event.TYPE_SLICE_END, round(row.end * nanoseconds))

    def add_inference(self, time: TimeLine, caveat: str) -> None:
        """The inference as a process of its own, with a track for each processor."""
        self._process(_INFERENCE, f"inference on {time.place}", (wording.time_sentence(time), caveat))
        event = self._messages.TrackEvent
        for processor in ("CPU", "NPU"):
            found = [row for row in time.parts if row.on == processor]
            if not found:
                continue
            self._track(processor, _INFERENCE)
            for row in found:
                begin, end = (round(Fraction(at) * _NS_PER_S) for at in (row.start_s, row.end_s))
                facts = {"operator": row.operator, "part": row.what, "source": time.total.source}
                part = _Slice(processor, row.label, 0, 0, facts)
                self._event(processor, event.TYPE_SLICE_BEGIN, begin, part)
                self._event(processor, event.TYPE_SLICE_END, end)

    def content(self) -> bytes:
        content: bytes = self._trace.serialize()
        return content

    def _process(self, number: int, name: str, labels: Iterable[str]) -> None:
        descriptor = self._packet().track_descriptor
        descriptor.uuid = number
        descriptor.process.pid = 1 + (number == _INFERENCE)
        descriptor.process.process_name = plain_text.line(name)
        descriptor.process.process_labels.extend(plain_text.line(row) for row in labels if row)

    def _packet(self) -> Any:
        packet = self._trace.add_packet()
        packet.trusted_packet_sequence_id = 1
        return packet

    def _track(self, name: str, process: int = _PROCESS) -> None:
        self._tracks[name] = process + 1 + len(self._tracks)
        descriptor = self._packet().track_descriptor
        descriptor.uuid = self._tracks[name]
        descriptor.parent_uuid = process
        descriptor.name = plain_text.line(name)

    def _event(self, track: str, kind: int, timestamp: int, row: _Slice | None = None) -> None:
        packet = self._packet()
        packet.timestamp = timestamp
        packet.track_event.type = kind
        packet.track_event.track_uuid = self._tracks[track]
        if row is None:
            return
        packet.track_event.name = plain_text.line(row.name)
        for key, value in row.facts.items():
            annotation = packet.track_event.debug_annotations.add()
            annotation.name = plain_text.line(key)
            if isinstance(value, int) and value < _FURTHEST_NS:
                annotation.int_value = value
            else:
                annotation.string_value = plain_text.line(value)
