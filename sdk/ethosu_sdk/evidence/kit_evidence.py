"""The log and memory of Arm's inference runner → proof that it ran the program, on positive evidence alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ethosu_sdk.errors import SdkError
from ethosu_sdk.evidence import kit_log
from ethosu_sdk.evidence.kit_log import KitLog, KitTensor, Moved
from ethosu_sdk.evidence.uart import ProtocolError

_LEAST_TELLING = 16  # bytes that random ones cannot equal by chance
_TAIL = 12
_SHOWN = 300


@dataclass(frozen=True)
class KitExpected:
    """What the host knows before the run. Tensors are given by their bytes, moves as the runner must report them.

    `delegates` are instruction → backend, `blank` what lay where the outputs and the guard behind them were to come.
    """

    sha256: str
    program_address: int
    method: str
    macs: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    read: Moved
    copied: Moved
    operators: tuple[str, ...]
    delegates: Mapping[int, str]
    blank: bytes = field(repr=False)


@dataclass(frozen=True)
class KitEvidence:
    """A complete and consistent run."""

    log: KitLog
    counters: Mapping[str, int]
    outputs: tuple[bytes, ...] = field(repr=False)


def gather(uart: bytes, program: bytes, written: bytes, expected: KitExpected) -> KitEvidence:
    """The evidence in what the runner printed and in the `program` and outputs (`written`) as memory holds them.

    ProtocolError, with the last lines of the log, for anything missing or contradictory.
    """
    lines = uart.decode("utf-8", errors="replace").splitlines()
    try:
        log = kit_log.parse(lines)
        for problem in _problems(log, program, written, expected):
            raise ProtocolError(problem)
    except SdkError as error:
        printed = [line for line in lines if line.strip("\x04 \x00")][-_TAIL:]
        tail = "\n".join(f"  | {line}" for line in printed)
        raise ProtocolError(f"{error.message}\nlast UART lines:\n{tail}", "see the log") from error
    return KitEvidence(log, log.groups[0].first, tuple(_parted(written, expected.outputs)))


def _problems(log: KitLog, program: bytes, written: bytes, expected: KitExpected) -> Iterator[str]:
    """What is wrong, the most helpful message first."""
    for _, text in log.failures:
        yield f"Arm's runner failed: {text[:_SHOWN]}"
    if not log.finished:
        yield "Arm's runner did not complete the inference"
    if not log.ended:
        yield "the log of Arm's runner has no end"
    for name, said, due in _facts(log, expected):
        if said != due:
            yield f"Arm's runner reports {said} for {name}, but {due} is expected"
    yield from _metrics(log)
    if hashlib.sha256(program).hexdigest() != expected.sha256:
        yield "the program in the board's memory is not the program of this run"
    yield from _not_written(written, expected)


def _facts(log: KitLog, expected: KitExpected) -> Iterator[tuple[str, object, object]]:
    """(what, what the log says, what it must say)"""
    said = log.facts
    address = said.get("model_address")
    yield "the program's address", address, f"{expected.program_address:#010x}"
    yield "the method", said.get("method"), expected.method
    yield "the NPU's MACs", said.get("macs"), expected.macs
    yield "inferences", said.get("inferences"), 1
    yield "the bytes of inputs", _sizes(log.inputs), expected.inputs
    yield "the bytes of outputs", _sizes(log.outputs), expected.outputs
    yield "operators", tuple(log.operators), expected.operators
    yield "delegate calls", log.delegates, dict(expected.delegates)
    if expected.inputs:
        yield "the inputs read", log.read, expected.read
    yield "the outputs copied", log.copied, expected.copied


def _sizes(tensors: Sequence[KitTensor]) -> tuple[int, ...]:
    return tuple(row.nbytes for row in tensors)


def _metrics(log: KitLog) -> Iterator[str]:
    """The metrics must be there once, for one inference, and say what the lines for people say."""
    if len(log.groups) != 1 or log.groups[0].count != 1 or kit_log.cycles(log.groups[0].first) is None:
        yield "the log of Arm's runner does not have the metrics of exactly one inference"
    elif [log.groups[0].first] != log.reports:
        yield f"the metrics of Arm's runner are {log.groups[0].first}, but its lines report {log.reports}"


def _not_written(written: bytes, expected: KitExpected) -> Iterator[str]:
    """The outputs must have replaced the blank memory, and nothing after them may have changed."""
    size = sum(expected.outputs)
    if written[size:] != expected.blank[size:]:
        yield "Arm's runner wrote past the end of the outputs"
    for index, (found, blank) in enumerate(
        zip(_parted(written, expected.outputs), _parted(expected.blank, expected.outputs), strict=True)
    ):
        if len(found) >= _LEAST_TELLING and found == blank:
            yield f"Arm's runner reports that it copied output {index}, but did not write it"


def _parted(content: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield content[at : at + size]
        at += size


def check_jobs(found: KitEvidence, job_cycles: Sequence[int]) -> None:
    """ProtocolError unless the simulator's NPU ran the jobs that the log reports, and counted the same cycles."""
    due = len(found.log.delegates)
    if len(job_cycles) != due:
        raise ProtocolError(
            f"Arm's runner reports {due} delegate calls, but the simulator's NPU ran {len(job_cycles)} jobs"
        )
    said = kit_log.cycles(found.counters)
    if sum(job_cycles) != said:
        raise ProtocolError(
            f"Arm's runner reports {said} cycles, but the simulator's NPU counted {sum(job_cycles)}"
        )
