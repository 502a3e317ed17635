"""Compares what a simulator observed of a run with what the firmware reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ethosu_sdk.errors import SdkError
from ethosu_sdk.evidence.evidence import Evidence
from ethosu_sdk.evidence.uart import ProtocolError, UartLog


class Ran(Protocol):
    """An NPU job as the simulator saw it."""

    @property
    def failure(self) -> SdkError | None:
        """What made it fail."""
        ...


_HINT = "the firmware's log contradicts what its NPU did: read uart.log, and check whether the firmware was changed"


def check_jobs(found: Evidence, job_cycles: Sequence[int]) -> None:
    """ProtocolError unless the simulator's NPU ran the jobs that the log reports: as many, each with its cycles.

    `job_cycles` are the cycles of each job in turn, as the NPU's own counter had them.
    """
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


def check_failures(jobs: Sequence[Ran] | None, log: UartLog | None = None) -> None:
    """Raise what made a job of the simulator's NPU fail, with what the firmware's `log` says of it: the error is that
    of the same program on the host."""
    failure = next((job.failure for job in jobs or () if job.failure is not None), None)
    if failure is None:
        return
    rows = [] if log is None else log.of_type("error")
    said = [f"\n  the firmware stopped in {row['stage']}: {row['detail']}" for row in rows]
    failure.message += "".join(said)
    failure.args = (failure.message,)
    raise failure
