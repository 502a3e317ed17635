"""Simulators run a firmware and return what it printed and how it ended."""

from ethosu_sdk.simulators.base import (
    COUNTED,
    MODEL_FIGURES,
    MODELLED,
    Figures,
    LoadedElf,
    SimulationRequest,
    SimulationResult,
    Simulator,
    cycles_band,
)
from ethosu_sdk.simulators.create import FIRMWARE_SIMULATORS, SimulatorOptions, create, is_installed
from ethosu_sdk.simulators.pmu_events import choose_events, event_groups, events

__all__ = [
    "COUNTED",
    "FIRMWARE_SIMULATORS",
    "MODELLED",
    "MODEL_FIGURES",
    "Figures",
    "LoadedElf",
    "SimulationRequest",
    "SimulationResult",
    "Simulator",
    "SimulatorOptions",
    "choose_events",
    "create",
    "cycles_band",
    "event_groups",
    "events",
    "is_installed",
]
