"""Simulators: they run a firmware and hand back what it printed and how it ended."""

from ethosu_sdk.simulators.base import SimulationRequest, SimulationResult, Simulator
from ethosu_sdk.simulators.create import FIRMWARE_SIMULATORS, create, is_installed
from ethosu_sdk.simulators.pmu_events import choose_events, event_groups, events

__all__ = [
    "FIRMWARE_SIMULATORS",
    "SimulationRequest",
    "SimulationResult",
    "Simulator",
    "choose_events",
    "create",
    "event_groups",
    "events",
    "is_installed",
]
