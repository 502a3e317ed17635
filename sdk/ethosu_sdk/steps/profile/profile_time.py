"""The time line of a profile: the run's, with what the NPU's operations and Vela's estimate tell of it."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.records import Record
from ethosu_sdk.steps.profile.npu_rows import ESTIMATED
from ethosu_sdk.steps.shared import time_line
from ethosu_sdk.steps.shared.time_line import Facts

_ENGINES = {"mac": "mac_percent", "weight_decoder": "weight_decoder_percent", "memory": "memory_percent"}


def member(facts: Facts, parts: Record, rows: Sequence[Record]) -> tuple[Record, list[Record]]:
    """The member `time` and what of it is unavailable, from the profile's `delegates`, `totals` and operations."""
    cycles = {row["source"]: row["value"] for row in parts["totals"]["npu"]["cycles"]}
    found, unavailable = time_line.member(facts)
    clock = facts.npu_clock
    if not found or clock is None or not cycles.get("modelled"):
        return found, unavailable
    active = cycles["modelled"]
    idle = max(0, round(found["time"]["total"]["duration_s"] * clock.hz) - active)
    more = {"engines": {**_engines(rows, active), "active_cycles": active, "idle_cycles": idle}}
    if cycles.get(ESTIMATED):
        more["vela"] = {"duration_s": cycles[ESTIMATED] / clock.hz}
    return {"time": {**found["time"], **more}}, unavailable


def _engines(rows: Sequence[Record], cycles: int) -> Record:
    """How much of the NPU's `cycles` its engines work, in percent.

    Operations overlap, and each counts the memory that it uses most: the sum can be more than all of the time.
    """
    work = {
        stage: sum(row["calls"] * row["stages"][stage] for row in rows if row["runs_on"] == "NPU")
        for stage in _ENGINES
    }
    return {name: min(100.0, 100 * work[stage] / cycles) for stage, name in _ENGINES.items()}
