"""A core's pipeline: what each instruction occupies and waits for, and when a sequence of them issues."""

from ethosu_sdk.cpu_cycles.pipeline.cores import CORES, Core, core_of
from ethosu_sdk.cpu_cycles.pipeline.encodings import split
from ethosu_sdk.cpu_cycles.pipeline.figures import Instruction, figures_of
from ethosu_sdk.cpu_cycles.pipeline.scoreboard import repeated_cycles, straight_cycles

__all__ = [
    "CORES",
    "Core",
    "Instruction",
    "core_of",
    "figures_of",
    "repeated_cycles",
    "split",
    "straight_cycles",
]
