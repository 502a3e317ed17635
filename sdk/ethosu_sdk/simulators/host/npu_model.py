"""Executes the Ethos-U delegates of a program on the host runtime with the SDK's NPU model."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ethosu_sdk import npu
from ethosu_sdk.npu import pmu
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.simulators.host.runtime import DelegateCall
from ethosu_sdk.simulators.host.wire import Array

Observer = Callable[[DelegateCall, npu.Written], None]


class NpuModel:
    """Callable for :func:`ethosu_sdk.simulators.host.open_pte`. Decoded weights are kept from call to call.

    `observer` is given each OFM of each call as it is written. `calls` are the counters of each delegate call so far;
    whoever reads them may clear them.
    """

    def __init__(self, system: SystemConfig | None = None, observer: Observer | None = None) -> None:
        """`system` is what cycles and AXI ports are modelled for, by default the family's default."""
        self._system = system
        self._observer = observer
        self._programs: dict[str, npu.Program] = {}
        self.calls: list[npu.Counters] = []

    def __call__(self, call: DelegateCall) -> list[Array]:
        """Execute one delegate call. Raises what :func:`ethosu_sdk.npu.run` raises."""
        if call.payload_sha256 not in self._programs:
            self._programs[call.payload_sha256] = npu.load(call.payload, self._system)
        observer = None if self._observer is None else functools.partial(self._observer, call)
        result = npu.run(self._programs[call.payload_sha256], call.inputs, observer)
        self.calls.append(result.counters)
        return result.outputs


def event_totals(target_npu: str, events: tuple[int, ...], calls: list[npu.Counters]) -> dict[int, int]:
    """PMU event → how often it happened in all `calls`, counted per call as the hardware's PMU does."""
    kind = pmu.pmu_of(target_npu)
    return {event: sum(kind.value(event, counters) for counters in calls) for event in events}
