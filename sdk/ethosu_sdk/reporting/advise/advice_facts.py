"""What rules judge and what they say: the facts of a program, and an advice with what it brings and costs."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ethosu_sdk.records import result_files
from ethosu_sdk.records.advice import Change, Evidence, Item, MetricName
from ethosu_sdk.records.common import Source
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.profile import Operation, Profile, cycles
from ethosu_sdk.records.run_facts import Mode, ProgramFacts

COMPILE, DEBUG, MODES = "compile", "debug", "modes"
WORTH_SHARE = 0.02  # of what there is: less is not worth a change


@dataclass(frozen=True)
class Facts:
    """The profile of a program; the records of `compile` and `debug`, its memory modes, and how many output channels
    its NPU computes at once, as far as they are known. `missing` says why one is not."""

    profile: Profile
    compilation: Compilation | None = None
    debugging: Debug | None = None
    modes: Mapping[str, Mode] = field(default_factory=dict)
    channel_step: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def compiled(self) -> Compilation:
        assert self.compilation is not None
        return self.compilation

    @property
    def debug(self) -> Debug:
        assert self.debugging is not None
        return self.debugging

    @property
    def npu_rows(self) -> list[Operation]:
        return [row for row in self.profile.operations if row.runs_on == "NPU"]

    @property
    def cpu_rows(self) -> list[Operation]:
        return [row for row in self.profile.operations if row.runs_on == "CPU"]

    @property
    def memories(self) -> frozenset[str]:
        return frozenset(row.memory for row in self.profile.memories)

    @property
    def npu_cycles(self) -> int:
        """Modelled cycles of an inference, 0 where they are not known."""
        return cycles(self.profile.totals.npu.cycles, "modelled") or 0

    @property
    def cpu_calls(self) -> int:
        return sum(row.calls for row in self.cpu_rows)

    def compiled_again(self, **changed: str) -> str:
        """The command line that compiles the program once more with what `changed` names."""
        files = result_files.recompile_files(self.compiled)
        return result_files.recompile_command(self.compiled, *files, **changed)


def modelled_cycles(row: Operation) -> int:
    return row.calls * row.modelled_cycles


def facts_of(
    program: ProgramFacts,
    profile: Profile,
    compiled: Compilation | None,
    debug: Debug | None,
    missing: Mapping[str, str],
) -> Facts:
    """What the rules need. `missing` says why a record is not there."""
    known = {kind: missing[kind] for kind in (COMPILE, DEBUG) if missing.get(kind)}
    known |= {MODES: program.modes_reason} if program.modes_reason else {}
    return Facts(profile, compiled, debug, program.modes, program.channel_step, known)


class Metric(NamedTuple):
    """A figure that advice changes."""

    name: MetricName
    unit: str
    better: Literal["less", "more"]


TIME = Metric("time of an inference", "ms", "less")
NPU_CYCLES = Metric("NPU cycles", "cycles", "less")
CPU_OPERATORS = Metric("CPU operators", "calls", "less")
CPU_CYCLES = Metric("CPU cycles", "cycles", "less")
CPU_INSTRUCTIONS = Metric("CPU instructions", "instructions", "less")
COMPUTING_OPERATORS = Metric("operators that compute on the CPU", "calls", "less")
DELEGATES = Metric("delegates", "delegates", "less")
SRAM = Metric("SRAM", "bytes", "less")
FLASH = Metric("flash", "bytes", "less")
TOTAL_CYCLES = Metric("total cycles", "cycles", "less")
IO_BYTES = Metric("inputs and outputs", "bytes", "less")
CHANNELS = Metric("output channels", "channels", "more")
MAC_UNITS = Metric("MACs per cycle that the NPU has", "MACs", "less")
SQNR = Metric("SQNR", "dB", "more")


def figure_evidence(name: str, value: float, unit: str, source: Source | None = None) -> Evidence:
    """A figure that the advice rests on; without `source` the program itself says it."""
    return Evidence(name=name, value=value, unit=unit, source=source)


def expected_change(
    metric: Metric, before: float, after: float, how: str, source: Source | None = None
) -> Change:
    """The change of a figure that following the advice should bring. `before` comes from `source`, `after` is
    expected; `how` says how it was computed."""
    return Change(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        before=before,
        after=after,
        how=how,
        source=source,
    )


# One thing to change. The row of the rule that finds it gives it its name.
Advice = functools.partial(Item, rule="", costs=())
QUANTISE, DEQUANTISE = "::quantize_per_tensor.out", "::dequantize_per_tensor.out"
_IN_ORDER = "::_clone_dim_order.out"  # of an image at the border, as a part of its conversion


def is_conversion(row: Operation) -> bool:
    """Whether a row of the profile converts between floating-point and quantised values, or is a part of that."""
    return row.name.endswith((QUANTISE, DEQUANTISE, _IN_ORDER))


def changes_without(facts: Facts, rows: Sequence[Operation]) -> list[Change]:
    """The processor's instructions and cycles without the calls of `rows`; nothing where they are not known."""
    found, cpu, own_cycles = [], facts.profile.totals.cpu, cpu_cycles(rows)
    if cpu.instructions is not None:
        own, before = (
            sum(int(row.instructions.value) for row in rows if row.instructions),
            cpu.instructions.value,
        )
        how = "the counted instructions of these calls fall away"
        found.append(expected_change(CPU_INSTRUCTIONS, int(before), int(before) - own, how, "counted"))
    if cpu.cycles is not None and own_cycles:
        how, before = "the modelled cycles of these calls fall away", cpu.cycles.value
        found.append(expected_change(CPU_CYCLES, before, before - own_cycles, how, "modelled"))
    return found


def cpu_cycles(rows: Sequence[Operation]) -> int:
    """The processor's modelled cycles in `rows`, as far as they are known."""
    return sum(int(row.cpu_cycles.value) for row in rows if row.cpu_cycles is not None)
