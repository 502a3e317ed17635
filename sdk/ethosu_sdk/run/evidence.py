"""Records → proof that a run, or each call of a script, happened as it should: positive evidence alone."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk.base.errors import SdkError, SimulationError
from ethosu_sdk.program import protocol
from ethosu_sdk.program.feeds import Feed, Steps, taken_value
from ethosu_sdk.program.pte_schema import RECORD_TYPES
from ethosu_sdk.run import input_image, sequences
from ethosu_sdk.run.execution import Kind
from ethosu_sdk.run.repeats import Changed, RepeatPlan, StartState, changed_results
from ethosu_sdk.run.sequences import Choices
from ethosu_sdk.run.uart import ProtocolError, UartLog, joined_chunks

Array = npt.NDArray[Any]
_DTYPES = {row.dtype for row in RECORD_TYPES}
_TAIL = 12


class ExpectedRun(Struct, frozen=True):
    """What the host knows before the run and the firmware must confirm."""

    model_sha256: str
    model_bytes: int
    board: str
    steps: Steps  # the inputs, with the bytes that the firmware gets
    outputs: int
    repeats: int = 1  # of every set
    event_groups: int = 1  # which the repeats count in turn
    counts_cycles: bool = False  # of the processor, for each instruction
    state: StartState = ""  # what a repeat begins with, as in the plan
    pieces: dict[int, int] = {}  # of a call's stream, by instruction; empty: never cut
    nonce: bytes = input_image.NO_NONCE  # that the input image brought
    sends_last: bool = False  # whether the bytes of outputs come of the last set alone
    method: str = ""  # its name; empty: any
    data_files: tuple[tuple[int, str], ...] = ()  # of the model: bytes and SHA-256

    @property
    def plan(self) -> RepeatPlan:
        return RepeatPlan(self.steps.count, self.repeats, self.event_groups, bool(self.pieces), self.state)


class PmuSample(Struct, frozen=True):
    """Counters around one NPU job: a delegate call, or a piece of one."""

    inference: int
    instruction: int
    cycles: int
    overflow: int
    counters: tuple[tuple[int, int], ...]  # (event number, value)


class ExecutedInstruction(Struct, frozen=True):
    """One executed instruction of the first inference: a `kind` of INSTRUCTION_KINDS; `name` is that of the operator
    or backend, and of the instruction itself where it calls neither. `cpu_cycles` are those of the processor, where
    the run asked for them."""

    instruction: int
    kind: Kind
    name: str
    cpu_cycles: int | None = None


class Evidence(Struct, frozen=True):
    """A complete and consistent run, as the firmware reported it. `plan` is what ran, which a feed may have ended
    early. `outputs` are those of the first repeat of each set, or of the last set alone; `crcs` are of all sets.
    `choices` are what feeds chose, by set and input. A repeat that gave others, or whose counters are not those of
    the first that counted the same events, is in `changed_outputs` or `changed_counters`. `pieces` are those of `pmu`
    that belong to pieces of command streams; `jobs` is how many NPU jobs the delegate calls were."""

    plan: RepeatPlan
    outputs: tuple[tuple[Array, ...], ...]  # [set][output]
    crcs: tuple[tuple[str, ...], ...]  # [set][output]
    choices: tuple[Choices, ...]
    npu: dict[str, int] | None  # ID and CONFIG as read
    memory: tuple[dict[str, Any], ...]
    pmu: tuple[PmuSample, ...]
    operators: tuple[ExecutedInstruction, ...]
    delegate_calls: int
    jobs: int
    pieces: tuple[PmuSample, ...]
    changed_outputs: tuple[Changed, ...]
    changed_counters: tuple[Changed, ...]


def evidence_of_run(log: UartLog, expected: ExpectedRun, exit_code: int) -> Evidence:
    """The run's evidence; ProtocolError, with the last UART lines, for anything missing or contradictory."""
    try:
        check_log(log, [expected])
        count = sequences.steps_done(log, expected.steps, expected.repeats)
        check_end(log, count * expected.repeats, expected.nonce, exit_code)
        return evidence_of_inferences(log, expected)
    except ProtocolError as error:
        lines = "\n".join(f"  | {line}" for line in log.lines[-_TAIL:])
        raise ProtocolError(f"{error.message}\nlast UART lines:\n{lines}", error.hint) from error


def check_log(log: UartLog, expected: Sequence[ExpectedRun]) -> None:
    """ProtocolError for a log that is damaged, of another program or firmware, or reports a failure. `expected` has
    an element for each method."""
    _refuse_reported_failures(log)
    if log.problems:
        raise ProtocolError(f"the firmware's records are damaged: {log.problems[0]}", "see uart.log")
    _check_identity(log, expected[0])
    _check_data_files(log, expected[0])
    methods = log.of_type("method")
    if len(methods) != len(expected):
        raise ProtocolError(f"{len(methods)} 'method' records instead of {len(expected)}")
    for method, row in zip(methods, expected, strict=True):
        if method["name"] != (row.method or method["name"]) or method["outputs"] != row.outputs:
            raise ProtocolError(
                f"the firmware's method '{method['name']}' has {method['outputs']} outputs, but the file has "
                f"'{row.method}' with {row.outputs}"
            )


def evidence_of_inferences(log: UartLog, expected: ExpectedRun) -> Evidence:
    """What the records of a checked log say of the inferences of a method."""
    count = sequences.steps_done(log, expected.steps, expected.repeats)
    expected = replace(expected, steps=dataclasses.replace(expected.steps, count=count))
    plan = expected.plan
    done = [row["inference"] for row in log.of_type("inference")]
    if done != list(range(plan.inferences)):
        raise ProtocolError(f"{len(done)} of {plan.inferences} inferences are reported as done")
    sent = _outputs(log, expected)
    last = sent[expected.repeats - 1 :: expected.repeats]  # from which feeds make the next step's
    choices = sequences.check_inputs(
        log,
        expected.steps,
        expected.repeats,
        [{index: row.array for index, row in rows.items()} for rows in last],
        [{index: row.crc for index, row in rows.items()} for rows in last],
    )
    pmu = tuple(
        PmuSample(
            row["inference"],
            row["instruction"],
            row["cycles"],
            row["overflow"],
            tuple(map(tuple, row["counters"])),
        )
        for row in log.of_type("pmu")
    )
    pieces = tuple(row for row in pmu if plan.runs_pieces(row.inference))
    calls = {row["inference"]: row["delegate_calls"] for row in log.of_type("inference")}
    _check_pieces(expected, pmu, pieces)
    npu = log.of_type("npu")
    first = sent[:: expected.repeats]
    return Evidence(
        plan=plan,
        outputs=tuple(
            tuple(row.array for row in rows.values() if row.array is not None)
            for rows in (first[-1:] if expected.sends_last else first)
        ),
        crcs=tuple(tuple(row.crc for row in rows.values()) for rows in first),
        choices=choices,
        npu=npu[0] if npu else None,
        memory=tuple(log.of_type("memory")),
        pmu=pmu,
        operators=_operators(log, expected),
        delegate_calls=sum(calls.values()),
        jobs=len(pieces) + sum(count for number, count in calls.items() if not plan.runs_pieces(number)),
        pieces=pieces,
        changed_outputs=changed_results(
            plan, [{i: row.identity for i, row in rows.items()} for rows in sent]
        ),
        changed_counters=_changed_counters(plan, pmu),
    )


def _refuse_reported_failures(log: UartLog) -> None:
    for fault in log.of_type("fault"):
        raise ProtocolError(
            f"the firmware faulted: {fault['cause']} at pc={fault['pc']:#010x}, lr={fault['lr']:#010x} "
            f"(CFSR={fault['cfsr']:#010x}, HFSR={fault['hfsr']:#010x}, address={fault['address']:#010x})",
            "`arm-none-eabi-addr2line -e executor_runner.elf ADDRESS` names the line",
        )
    for row in log.of_type("error"):
        raise ProtocolError(f"the firmware stopped in {row['stage']}: {row['code']}: {row['detail']}")


def _single(log: UartLog, name: str) -> dict[str, Any]:
    rows = log.of_type(name)
    if len(rows) != 1:
        raise ProtocolError(f"{len(rows)} '{name}' records instead of one")
    return rows[0]


def _check_identity(log: UartLog, expected: ExpectedRun) -> None:
    boot = _single(log, "boot")
    for name, expected_value in (
        ("protocol", protocol.VERSION),
        ("board", expected.board),
        ("model_bytes", expected.model_bytes),
        ("model_sha256", expected.model_sha256),
    ):
        if boot[name] != expected_value:
            raise ProtocolError(
                f"the firmware's {name} is {boot[name]}, but this run needs {expected_value}",
                "build the firmware again",
            )


def _check_data_files(log: UartLog, expected: ExpectedRun) -> None:
    found = [(row["index"], row["bytes"], row["sha256"]) for row in log.of_type("data_file")]
    due = [(index, *row) for index, row in enumerate(expected.data_files)]
    if found != due:
        other = next((row for row in due if row not in found), None)
        what = (
            f"{len(found)} of them, not {len(due)}" if other is None else f"number {other[0]} is another file"
        )
        raise ProtocolError(
            f"the firmware's data files are not those of the model: {what}", "build the firmware again"
        )


def check_end(log: UartLog, inferences: int, nonce: bytes, exit_code: int) -> None:
    """ProtocolError for a log without a proper end, or with more or less than so many `inferences`."""
    end = _single(log, "end")
    done = [row["inference"] for row in log.of_type("inference")]
    if log.records[-1].type != "end" or end["records"] != len(log.records):
        raise ProtocolError(f"{len(log.records)} records arrived, but the firmware counted {end['records']}")
    if done != list(range(inferences)) or end["inferences"] != len(done):
        raise ProtocolError(f"{len(done)} of {inferences} inferences are reported as done")
    if end["seal"] != seal([record.covered for record in log.records[:-1]], nonce):
        raise ProtocolError(
            "the log is not from this run: its seal does not match the nonce that the firmware was given",
            "the UART's output was replayed or changed, or the firmware's memory was overwritten: run it again",
        )
    if end["status"] != protocol.STATUS_OK or exit_code != 0:
        raise ProtocolError(f"the run ended with status '{end['status']}' and exit code {exit_code}")


def seal(records: Sequence[str], nonce: bytes) -> str:
    """What a firmware that was given `nonce` says of its `records`; see :mod:`ethosu_sdk.program.protocol`."""
    text = "".join(f"{record}\n" for record in records).encode("ascii", errors="replace")
    return hashlib.sha256(nonce + hashlib.sha256(text).digest()).hexdigest()


def _by_tensor(log: UartLog, name: str) -> dict[tuple[int, int], list[dict[str, Any]]]:
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in log.of_type(name):
        found.setdefault((row["inference"], row["index"]), []).append(row)
    return found


class _Output(Struct, frozen=True):
    """One output of one inference; `identity` is what tells it from another, `array` None if unsent."""

    array: Array | None
    identity: tuple[object, ...]
    crc: str


def _outputs(log: UartLog, expected: ExpectedRun) -> list[dict[int, _Output]]:
    """By inference, then by output index. A repeat that sent no bytes has those that were sent last."""
    unsent = (expected.steps.count - 1) * expected.repeats if expected.sends_last else 0
    announced, pieces = _by_tensor(log, "output"), _by_tensor(log, "data")
    found: list[dict[int, _Output]] = []
    for inference in range(expected.plan.inferences):
        is_first = expected.plan.first(inference) == inference
        row: dict[int, _Output] = {}
        for index in range(expected.outputs):
            where, key = f"output {index} of inference {inference}", (inference, index)
            records, chunks = announced.get(key, []), pieces.get(key, [])
            before = None if is_first or chunks else found[-1][index]
            row[index] = _output(records, chunks, where, before, inference >= unsent)
        found.append(row)
    if len(log.of_type("output")) != expected.plan.inferences * expected.outputs:
        raise ProtocolError("the firmware sent more outputs than the model has")
    if pieces.keys() - announced.keys():
        raise ProtocolError("the firmware sent bytes of an output that it did not announce")
    return found


def _check_pieces(expected: ExpectedRun, pmu: Sequence[PmuSample], pieces: Sequence[PmuSample]) -> None:
    calls = Counter(row.instruction for row in pmu if row.inference == 0)
    for inference in filter(expected.plan.runs_pieces, range(expected.plan.inferences)):
        jobs = Counter(row.instruction for row in pieces if row.inference == inference)
        due = {number: count * expected.pieces.get(number, 0) for number, count in calls.items()}
        if jobs != due:
            raise ProtocolError(
                f"inference {inference} reports {jobs.total()} NPU jobs, but its delegates have {sum(due.values())} "
                "pieces"
            )


def _changed_counters(plan: RepeatPlan, samples: Sequence[PmuSample]) -> tuple[Changed, ...]:
    """By instruction: events are compared within their group, cycles with the first repeat."""
    cycles: list[dict[int, list[object]]] = [{} for _ in range(plan.inferences)]
    events: list[dict[int, list[object]]] = [{} for _ in range(plan.inferences)]
    for row in samples:
        if row.inference >= plan.inferences:
            raise ProtocolError(
                f"counters arrived for inference {row.inference}, but the run has only {plan.inferences}"
            )
        cycles[row.inference].setdefault(row.instruction, []).append(row.cycles)
        events[row.inference].setdefault(row.instruction, []).append((row.overflow, row.counters))
    found = {
        *changed_results(plan, cycles, whole=True),
        *changed_results(plan, events, same_group=True, whole=True),
    }
    return tuple(sorted(found, key=lambda row: (row.set, row.repeat, row.index)))


def _output(
    rows: list[dict[str, Any]], chunks: list[dict[str, Any]], where: str, before: _Output | None, sent: bool
) -> _Output:
    """The output that `rows` announce and `chunks` hold; without chunks it must be the one `before`."""
    if len(rows) != 1:
        raise ProtocolError(f"{len(rows)} 'output' records for {where} instead of one")
    row = rows[0]
    identity = (row["dtype"], tuple(row["shape"]), row["bytes"], row["crc32"])
    if before is not None and identity == before.identity:
        return before
    if not sent and not chunks:
        return _Output(None, identity, row["crc32"])
    data, shape = joined_chunks(chunks, where), row["shape"]
    if row["dtype"] not in _DTYPES:
        raise ProtocolError(f"{where} has dtype {row['dtype']!r} and shape {shape!r}")
    dtype = np.dtype(row["dtype"])
    if len(data) != row["bytes"] or len(data) != dtype.itemsize * math.prod(shape):
        raise ProtocolError(f"{where} has {len(data)} bytes, but {row['bytes']} were announced")
    if f"{zlib.crc32(data):08x}" != row["crc32"]:
        raise ProtocolError(f"the CRC of {where} does not match its bytes")
    return _Output(np.frombuffer(data, dtype).reshape(shape), identity, row["crc32"])


def _operators(log: UartLog, expected: ExpectedRun) -> tuple[ExecutedInstruction, ...]:
    """The instructions of the first inference, with the processor's cycles where those were asked for."""
    found = []
    for row in log.of_type("operator"):
        kind = row["kind"]
        if kind not in protocol.INSTRUCTION_KINDS:
            raise ProtocolError(f"the firmware reports an instruction of the unknown kind {kind!r}")
        name = row["name"] or protocol.INSTRUCTION_KINDS[kind]
        found.append(ExecutedInstruction(row["instruction"], cast(Kind, kind), name))
    cycles = log.of_type("cpu")
    counted = found if expected.counts_cycles else []
    if [row["instruction"] for row in cycles] != [row.instruction for row in counted]:
        raise ProtocolError(f"{len(cycles)} instructions have cycles, but {len(counted)} were executed")
    if counted:
        found = [replace(row, cpu_cycles=own["cycles"]) for row, own in zip(found, cycles, strict=True)]
    return tuple(found)


# The evidence of a script of calls: one log, parted into what each call left in it.

_OF_CALLS = (
    *("input", "operator", "cpu", "pmu", "inference"),
    *("output", "data", "choice", "state", "state_data"),
)


class ExpectedCall(Struct, frozen=True):
    """What a call must report, and the `takes` that make inputs of its first step from the call before."""

    expected: ExpectedRun
    takes: tuple[Feed, ...] = ()


def evidence_of_calls(
    log: UartLog, methods: Sequence[ExpectedRun], calls: Sequence[ExpectedCall], exit_code: int
) -> list[Evidence]:
    """The evidence of each call. `methods` has an element for each method that the firmware loads. ProtocolError for
    anything missing or contradictory."""
    check_log(log, methods)
    parts = _logs_of_calls(log, [row.expected.method for row in calls])
    rows: list[Evidence] = []
    for number, (call, (own, chosen)) in enumerate(zip(calls, parts, strict=True)):
        expected = call.expected
        try:
            if number:
                given = with_taken(expected.steps, call.takes, rows[-1].outputs[-1], chosen)
                expected = replace(expected, steps=given)
            rows.append(evidence_of_inferences(own, expected))
        except SimulationError as error:
            raise ProtocolError(f"call {number}, {expected.method}: {error.message}", error.hint) from error
    nonce = calls[0].expected.nonce
    check_end(log, sum(row.plan.inferences for row in rows), nonce, exit_code)
    return rows


def with_taken(
    given: Steps, takes: Sequence[Feed], outputs: Sequence[Array], told: Choices | None = None
) -> Steps:
    """`given`, whose first step takes `outputs` by `takes`. SimulationError for other indices than were `told`."""
    rows, chosen = list(given.given), {}
    for feed in takes:
        row = rows[feed.input]
        value, indices = taken_value(feed, outputs[feed.output], row[0], given.first_step - 1)
        rows[feed.input] = (value, *row[1:])
        if indices is not None:
            chosen[feed.input] = indices
    if told is not None and told != chosen:
        raise SimulationError(f"the firmware took {told}, but the outputs of the call before give {chosen}")
    return dataclasses.replace(given, given=tuple(rows))


def _logs_of_calls(log: UartLog, methods: Sequence[str]) -> list[tuple[UartLog, dict[int, tuple[int, ...]]]]:
    """The log of each call, its inferences counted from 0, and the indices that were chosen for what it takes."""
    starts = [number for number, row in enumerate(log.records) if row.type == "call"]
    begun = [log.records[number].payload for number in starts]
    if begun != [{"number": number, "method": name} for number, name in enumerate(methods)]:
        names = [str(row["method"]) for row in begun]
        raise ProtocolError(f"the firmware called {names}, but the script calls {list(methods)}")
    common = tuple(row for row in log.records if row.type not in (*_OF_CALLS, "call"))
    early = [row.type for row in log.records[: starts[0]] if row.type in _OF_CALLS]
    if early:
        raise ProtocolError(f"a '{early[0]}' record stands before the first call")
    parts, done = [], 0
    for start, end in zip(starts, [*starts[1:], len(log.records)], strict=True):
        own = [row for row in log.records[start:end] if row.type in _OF_CALLS]
        first = next((number for number, row in enumerate(own) if row.type != "choice"), len(own))
        renumbered = [
            replace(row, payload={**row.payload, "inference": row.payload["inference"] - done})
            if "inference" in row.payload
            else row
            for row in own
        ]
        chosen = sequences.choices(UartLog(tuple(renumbered[:first]), (), ())).get(0, {})
        parts.append((UartLog((*common, *renumbered[first:]), log.lines, ()), chosen))
        done += sum(row.type == "inference" for row in own)
    return parts


# What a simulator observed of a run, against what the firmware reported.


class Ran(Protocol):
    @property
    def failure(self) -> SdkError | None: ...


_HINT = "the firmware's log contradicts what its NPU did: read uart.log, and check whether the firmware was changed"


def crosscheck_jobs(found: Evidence, job_cycles: Sequence[int]) -> None:
    """ProtocolError unless the simulator's NPU ran the reported jobs, each with its cycles, in turn `job_cycles`."""
    if found.jobs != len(job_cycles):
        pieces = " and pieces of them" if found.pieces else ""
        raise ProtocolError(
            f"the firmware reports {found.jobs} delegate calls{pieces}, but the simulator's NPU ran "
            f"{len(job_cycles)} jobs",
            _HINT,
        )
    reported = [row.cycles for row in found.pmu]
    if len(reported) != len(job_cycles):
        raise ProtocolError(
            f"the firmware reports counters of {len(reported)} of its {len(job_cycles)} NPU jobs", _HINT
        )
    for number, (said, seen) in enumerate(zip(reported, job_cycles, strict=True)):
        if said != seen:
            raise ProtocolError(
                f"the firmware reports {said} cycles for NPU job {number}, but the simulator's NPU counted {seen}",
                _HINT,
            )


def raise_job_failure(jobs: Sequence[Ran] | None, log: UartLog | None = None) -> None:
    """Raise what made a job of the simulator's NPU fail, with what the firmware's `log` says of it."""
    failure = next((job.failure for job in jobs or () if job.failure is not None), None)
    if failure is None:
        return
    rows = [] if log is None else log.of_type("error")
    said = [f"\n  the firmware stopped in {row['stage']}: {row['detail']}" for row in rows]
    failure.message += "".join(said)
    failure.args = (failure.message,)
    raise failure
