"""The inputs of every inference as the firmware got them: given ones, and those that feeds made on the board."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.evidence.uart import ProtocolError, UartLog
from ethosu_sdk.feeds.stepping import Stepper, Steps

Array = npt.NDArray[Any]
Choices = dict[int, tuple[int, ...]]  # indices by input


def of_bytes(sets: Sequence[Sequence[bytes]]) -> Steps:
    """Steps whose inputs are all given, as raw bytes by set and input."""
    columns = zip(*sets, strict=True) if sets else ()
    return Steps(len(sets), tuple(tuple(np.frombuffer(row, np.uint8) for row in rows) for rows in columns))


def choices(log: UartLog) -> dict[int, Choices]:
    """What feeds chose, by inference."""
    found: dict[int, Choices] = {}
    for row in log.of_type("choice"):
        found.setdefault(row["inference"], {})[row["input"]] = tuple(row["values"])
    return found


def done(log: UartLog, steps: Steps, repeats: int) -> int:
    """How many steps a complete run has: all, or those up to one at which a feed chose to stop."""
    stops = {feed.input: feed.stops for feed in steps.feeds if feed.stops}
    for inference, chosen in sorted(choices(log).items()):
        if any(not {*chosen.get(number, ())}.isdisjoint(ends) for number, ends in stops.items()):
            return min(steps.count, inference // repeats + 1)
    return steps.count


def check(
    log: UartLog,
    steps: Steps,
    repeats: int,
    outputs: Sequence[Mapping[int, Array | None]],
    crcs: Sequence[Mapping[int, str]],
) -> tuple[Choices, ...]:
    """What feeds chose in each step; ProtocolError for an input of the firmware that is not the one which was given,
    or which the outputs of the step before make.

    The arrays of `steps` have the order of memory. `outputs` and `crcs` are those of the last repeat of each step;
    where an output was not sent, what its feed chose is taken from the log, as it went into the next step.
    """
    reported = {(row["inference"], row["index"]): row for row in log.of_type("input")}
    count, told, stepper, found = len(outputs), choices(log), Stepper(steps), []
    if len(reported) != count * repeats * len(steps.given):
        raise ProtocolError(
            f"{len(reported)} inputs reached the firmware, but {count * repeats * len(steps.given)} were sent"
        )
    for step in range(count):
        _check_step(reported, stepper, range(step * repeats, (step + 1) * repeats), _crcs(steps, step, crcs))
        said = told.pop((step + 1) * repeats - 1, {})
        try:
            made = stepper.take(outputs[step], said)
        except SimulationError as error:
            raise ProtocolError(f"step {step}: {error.message}") from error
        if made != said:
            raise ProtocolError(f"the firmware chose {said} in step {step}, but its outputs give {made}")
        found.append(made)
    if told:
        raise ProtocolError(f"the firmware chose indices in inference {min(told)}, where no feed chooses")
    return tuple(found)


def _crcs(steps: Steps, step: int, crcs: Sequence[Mapping[int, str]]) -> dict[int, str]:
    """The CRC of each input of `step` that is a copy of an output of the step before."""
    return {
        feed.input: crcs[step - 1][feed.output]
        for feed in steps.feeds
        if feed.is_copy and step >= steps.first_fed(feed)
    }


def _check_step(
    reported: Mapping[tuple[int, int], Mapping[str, Any]],
    stepper: Stepper,
    inferences: range,
    copied: Mapping[int, str],
) -> None:
    wanted = []
    for index, array in enumerate(stepper.inputs()):
        data = array.tobytes()
        wanted.append((len(data), copied.get(index) or f"{zlib.crc32(data):08x}"))
    for inference in inferences:
        for index, (size, crc) in enumerate(wanted):
            row = reported.get((inference, index), {})
            if row.get("bytes") != size or row.get("crc32") != crc:
                raise ProtocolError(
                    f"input {index} of inference {inference} changed on its way to the firmware"
                )
