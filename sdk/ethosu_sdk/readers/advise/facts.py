"""The facts that rules judge: the records of a program, and what it would cost in other memory modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ethosu_sdk.records import Record
from ethosu_sdk.results import compile_again
from ethosu_sdk.results.run_facts import Mode, ProgramFacts
from ethosu_sdk.tables import figures

COMPILE, PROFILE, DEBUG, MODES = "compile", "profile", "debug", "modes"
WORTH_SHARE = 0.02  # of what there is: less is not worth a change


@dataclass(frozen=True)
class Facts:
    """The records of a program by their kinds, an empty one where there is none, and why; its memory modes, and how
    many output channels its NPU computes at once."""

    compiled: Record
    profile: Record
    debug: Record
    modes: Mapping[str, Mode] = field(default_factory=dict)
    channel_step: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def npu_rows(self) -> list[Record]:
        """The profile's rows of the NPU."""
        return [row for row in self.profile.get("operations", ()) if row["runs_on"] == "NPU"]

    @property
    def cpu_rows(self) -> list[Record]:
        """The profile's rows of the CPU."""
        return [row for row in self.profile.get("operations", ()) if row["runs_on"] == "CPU"]

    @property
    def memories(self) -> frozenset[str]:
        """The names of the memories that the NPU reads and writes."""
        return frozenset(row["memory"] for row in self.profile.get("memories", ()))

    @property
    def npu_cycles(self) -> int:
        """Modelled cycles of an inference, 0 where they are not known."""
        return figures.cycles(self.profile.get("totals", {}).get("npu", {}), "modelled") or 0

    @property
    def cpu_instructions(self) -> int | None:
        """Instructions on the CPU in an inference; None where they were not counted."""
        counted = self.profile.get("totals", {}).get("cpu", {}).get("instructions")
        return None if counted is None else int(counted["value"])

    def compiled_again(self, **changed: str) -> str:
        """The command line that compiles the program once more with what `changed` names; see `compile_again`."""
        return compile_again.command(self.compiled, *compile_again.files(self.compiled), **changed)


def modelled(row: Record) -> int:
    """The modelled cycles of a row of the profile, in all of its calls."""
    found: int = row["calls"] * (figures.cycles(row, "modelled") or 0)
    return found


def stages(row: Record) -> Record:
    """The cycles of a row's stages, none where the profile does not tell."""
    found: Record = row.get("stages", {"mac": 0, "output": 0, "weight_decoder": 0, "memory": 0})
    return found


def module(row: Record) -> str:
    """The module of the model that a row, a layer or a call comes from; empty where that is not known."""
    return str(row.get("source", {}).get("module", ""))


def of(
    program: ProgramFacts, profile: Record, compiled: Record, debug: Record, missing: Mapping[str, str]
) -> Facts:
    """What the rules need. Records that are not there are empty, and `missing` says why."""
    known = {kind: missing[kind] for kind in (COMPILE, DEBUG) if missing.get(kind)}
    known |= {MODES: program.modes_reason} if program.modes_reason else {}
    return Facts(compiled, profile, debug, program.modes, program.channel_step, known)
