"""PMU events by NPU: which exist, which the simulator can count, and the choice that a user makes."""

from __future__ import annotations

from collections.abc import Mapping

from ethosu_sdk.errors import UsageError
from ethosu_sdk.npu.pmu import DEFAULT_EVENTS, EVENT_COUNTERS, EVENTS, Event
from ethosu_sdk.targets import suggestion

__all__ = ["Event", "choose_events", "events"]


def events(npu: str) -> Mapping[int, Event]:
    """Event number → event, for an NPU such as ``ethos-u55``. UsageError for one without a table."""
    if npu not in ("ethos-u55", "ethos-u65"):
        raise UsageError(f"the PMU events of {npu} are not known", "they are known for ethos-u55")
    return EVENTS


def choose_events(npu: str | None, names: str | None) -> tuple[int, ...]:
    """The event numbers for a comma-separated list of names; ExecuTorch's choice when there is none.

    Raises UsageError for an unknown name, a name given twice, or more names than the PMU has counters.
    """
    if npu is None:
        return ()
    if names is None:
        return DEFAULT_EVENTS
    by_name = {event.name: number for number, event in events(npu).items()}
    chosen = []
    for name in names.split(","):
        number = by_name.get(name.strip().removeprefix("ETHOSU_PMU_"))
        if number is None:
            raise UsageError(f"unknown PMU event '{name.strip()}'", suggestion(name.strip(), by_name))
        if number in chosen:
            raise UsageError(f"the PMU event '{name.strip()}' is given twice")
        chosen.append(number)
    if len(chosen) > EVENT_COUNTERS:
        raise UsageError(f"{len(chosen)} PMU events, but {npu} has {EVENT_COUNTERS} counters")
    return tuple(chosen)
