"""The facts that rules judge: the records of a program, and what it would cost in other memory modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.profile import Operation, Profile, cycles
from ethosu_sdk.results import compile_again
from ethosu_sdk.results.run_facts import Mode, ProgramFacts

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
    def cpu_instructions(self) -> int | None:
        """Instructions on the CPU in an inference; None where they were not counted."""
        counted = self.profile.totals.cpu.instructions
        return None if counted is None else int(counted.value)

    def compiled_again(self, **changed: str) -> str:
        """The command line that compiles the program once more with what `changed` names; see `compile_again`."""
        return compile_again.command(self.compiled, *compile_again.files(self.compiled), **changed)


def modelled(row: Operation) -> int:
    """The modelled cycles of a row of the profile, in all of its calls."""
    return row.calls * row.modelled_cycles


def of(
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
