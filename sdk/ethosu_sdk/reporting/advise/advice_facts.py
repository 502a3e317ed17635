"""What rules judge and what they say: the facts of a program, and an advice with what it brings and costs."""

from __future__ import annotations

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
        """The record of `compile`, for rules that need it."""
        assert self.compilation is not None
        return self.compilation

    @property
    def debug(self) -> Debug:
        """The record of `debug`, for rules that need it."""
        assert self.debugging is not None
        return self.debugging

    @property
    def npu_rows(self) -> list[Operation]:
        """The profile's rows of the NPU."""
        return [row for row in self.profile.operations if row.runs_on == "NPU"]

    @property
    def cpu_rows(self) -> list[Operation]:
        """The profile's rows of the CPU."""
        return [row for row in self.profile.operations if row.runs_on == "CPU"]

    @property
    def memories(self) -> frozenset[str]:
        """The names of the memories that the NPU reads and writes."""
        return frozenset(row.memory for row in self.profile.memories)

    @property
    def npu_cycles(self) -> int:
        """Modelled cycles of an inference, 0 where they are not known."""
        return cycles(self.profile.totals.npu.cycles, "modelled") or 0

    @property
    def cpu_calls(self) -> int:
        """Calls of operators on the CPU in an inference."""
        return sum(row.calls for row in self.cpu_rows)

    def compiled_again(self, **changed: str) -> str:
        """The command line that compiles the program once more with what `changed` names; see `compile_again`."""
        return result_files.recompile_command(
            self.compiled, *result_files.recompile_files(self.compiled), **changed
        )


def modelled_cycles(row: Operation) -> int:
    """The modelled cycles of a row of the profile, in all of its calls."""
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


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to change. `where` is the module or layer that it is about; `command` is a whole command line, `code`
    lines of the model's file; the first of `gains` is why it is given; `limits` say where it does not hold."""

    finding: str
    where: str = ""
    evidence: tuple[Evidence, ...]
    command: str = ""
    code: tuple[str, ...] = ()
    gains: tuple[Change, ...]
    costs: tuple[Change, ...] = ()
    limits: tuple[str, ...]

    def item(self, rule: str) -> Item:
        """As records have it."""
        return Item(
            rule=rule,
            finding=self.finding,
            where=self.where or None,
            evidence=self.evidence,
            command=self.command or None,
            code=self.code or None,
            gains=self.gains,
            costs=self.costs,
            limits=self.limits,
        )


QUANTISE, DEQUANTISE = "::quantize_per_tensor.out", "::dequantize_per_tensor.out"


def is_conversion(row: Operation) -> bool:
    """Whether a row of the profile converts between floating-point and quantised values."""
    return row.name.endswith((QUANTISE, DEQUANTISE))


def changes_without(facts: Facts, rows: Sequence[Operation]) -> list[Change]:
    """The processor's instructions and cycles without the calls of `rows`; nothing where they are not known."""
    found = []
    whole = facts.profile.totals.cpu.instructions
    if whole is not None:
        own = sum(int(row.instructions.value) for row in rows if row.instructions is not None)
        how = "the counted instructions of these calls fall away"
        found.append(
            expected_change(CPU_INSTRUCTIONS, int(whole.value), int(whole.value) - own, how, "counted")
        )
    cycles_of_all, own = facts.profile.totals.cpu.cycles, cpu_cycles(rows)
    if cycles_of_all is not None and own:
        how = "the modelled cycles of these calls fall away"
        before = cycles_of_all.value
        found.append(expected_change(CPU_CYCLES, before, before - own, how, "modelled"))
    return found


def cpu_cycles(rows: Sequence[Operation]) -> int:
    """The processor's modelled cycles in `rows`, as far as they are known."""
    return sum(int(row.cpu_cycles.value) for row in rows if row.cpu_cycles is not None)
