"""The evidence of a script of calls: one log, parted into what each call left in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.evidence import evidence, steps
from ethosu_sdk.evidence.evidence import Evidence, Expected
from ethosu_sdk.evidence.uart import ProtocolError, UartLog, UartRecord
from ethosu_sdk.feeds import Feed
from ethosu_sdk.feeds.stepping import Steps, taken

Array = npt.NDArray[Any]
_OF_CALLS = (
    "input",
    "operator",
    "cpu",
    "pmu",
    "inference",
    "output",
    "data",
    "choice",
    "state",
    "state_data",
)


@dataclass(frozen=True)
class CallExpected:
    """What a call must report, and the `takes` that make inputs of its first step from the call before."""

    expected: Expected
    takes: tuple[Feed, ...] = ()


@dataclass(frozen=True)
class _Part:
    """The log of a call, its inferences counted from 0, and the indices that were chosen for what it takes."""

    log: UartLog
    chosen: dict[int, tuple[int, ...]]


def gather(
    log: UartLog, methods: Sequence[Expected], calls: Sequence[CallExpected], exit_code: int
) -> list[Evidence]:
    """The evidence of each call. `methods` has an element for each method that the firmware loads.

    ProtocolError for anything missing or contradictory.
    """
    evidence.check_log(log, methods)
    parts = _parts(log, [row.expected.method for row in calls])
    rows: list[Evidence] = []
    for number, (call, part) in enumerate(zip(calls, parts, strict=True)):
        expected = call.expected
        try:
            if number:
                given = with_taken(expected.steps, call.takes, rows[-1].outputs[-1], part.chosen)
                expected = replace(expected, steps=given)
            rows.append(evidence.of_inferences(part.log, expected))
        except SimulationError as error:
            raise ProtocolError(f"call {number}, {expected.method}: {error.message}", error.hint) from error
    nonce = calls[0].expected.nonce
    evidence.check_end(log, sum(row.plan.inferences for row in rows), nonce, exit_code)
    return rows


def with_taken(
    given: Steps,
    takes: Sequence[Feed],
    outputs: Sequence[Array],
    told: dict[int, tuple[int, ...]] | None = None,
) -> Steps:
    """`given`, whose first step takes what `takes` make of the `outputs` of the step before it.

    SimulationError for other indices than were `told`, where something is told.
    """
    rows, chosen = list(given.given), {}
    for feed in takes:
        row = rows[feed.input]
        value, indices = taken(feed, outputs[feed.output], row[0], given.first_step - 1)
        rows[feed.input] = (value, *row[1:])
        if indices is not None:
            chosen[feed.input] = indices
    if told is not None and told != chosen:
        raise SimulationError(f"the firmware took {told}, but the outputs of the call before give {chosen}")
    return replace(given, given=tuple(rows))


def _parts(log: UartLog, methods: Sequence[str]) -> list[_Part]:
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
        renumbered = [_shifted(row, done) for row in own]
        part = UartLog((*common, *renumbered[first:]), log.lines, ())
        parts.append(_Part(part, steps.choices(UartLog(tuple(renumbered[:first]), (), ())).get(0, {})))
        done += sum(row.type == "inference" for row in own)
    return parts


def _shifted(record: UartRecord, done: int) -> UartRecord:
    if "inference" not in record.payload:
        return record
    return replace(record, payload={**record.payload, "inference": record.payload["inference"] - done})
