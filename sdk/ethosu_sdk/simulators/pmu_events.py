"""Which PMU events a run counts: by name from the user, by number to the firmware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import suggestion

if TYPE_CHECKING:
    from ethosu_sdk.npu.pmu import Event


def events(npu: str) -> Mapping[int, Event]:
    """The PMU events of `npu`, such as ``"ethos-u55"``, by number. UsageError when they are not known."""
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import pmu

    return pmu.pmu_of(npu).events


def choose_events(npu: str | None, names: str | None) -> tuple[int, ...]:
    """The numbers of the events to count: those in `names`, separated by commas, or ExecuTorch's defaults.

    None without an NPU. UsageError for an unknown or repeated name. There may be more than the NPU has counters:
    :func:`event_groups`.
    """
    from ethosu_sdk.npu import pmu

    if npu is None:
        if names is not None:
            raise UsageError("there are no PMU events to count: the model does not use an NPU")
        return ()
    kind = pmu.pmu_of(npu)
    if names is None:
        return kind.default_events
    numbers = {event.name: event.number for event in kind.events.values()}
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in numbers:
            raise UsageError(f"unknown PMU event '{name}'", suggestion(name.upper(), numbers))
        if chosen.count(name) > 1:
            raise UsageError(f"the PMU event {name} is given twice")
    return tuple(numbers[name] for name in chosen)


def event_groups(npu: str | None, numbers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """`numbers` in groups that `npu` can count together, in their order; none without events."""
    from ethosu_sdk.npu import pmu

    if npu is None or not numbers:
        return ()
    counters = pmu.pmu_of(npu).event_counters
    return tuple(tuple(numbers[start : start + counters]) for start in range(0, len(numbers), counters))
