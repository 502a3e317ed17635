"""Simulators: they run a firmware and hand back what it printed and how it ended."""

from ethosu_sdk.simulators.base import SimulationRequest, SimulationResult, Simulator

__all__ = ["SimulationRequest", "SimulationResult", "Simulator"]
