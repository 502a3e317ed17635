"""The facts that rules judge: the records of a program, and what its command streams cost in other memory modes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ethosu_sdk import pte
from ethosu_sdk.boards import board
from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.records import Record
from ethosu_sdk.steps.profile import figures, npu_rows
from ethosu_sdk.steps.shared import compile_again
from ethosu_sdk.targets import Target

COMPILE, PROFILE, DEBUG, MODES = "compile", "profile", "debug", "modes"
WORTH_SHARE = 0.02  # of what there is: less is not worth a change
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Mode:
    """A program in a memory mode: the modelled cycles of an inference, and the SRAM it takes by its present sizes.

    `fits` says whether the board of its family has that SRAM.
    """

    name: str
    cycles: int
    sram_bytes: int
    fits: bool


@dataclass(frozen=True)
class Facts:
    """The records of a program by their kinds, an empty one where there is none, and why; its memory modes."""

    compiled: Record
    profile: Record
    debug: Record
    modes: Mapping[str, Mode] = field(default_factory=dict)
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


def modes(program: pte.Pte, profile: Record) -> tuple[dict[str, Mode], str]:
    """The program in each memory mode that its system configuration has, and why there is none.

    The command streams are priced as they are with the memories of the other mode: Vela would schedule anew.
    """
    target = program.target()
    if target is None:
        return {}, "the program delegates nothing to an NPU"
    calls = {row["index"]: row["calls"] for row in profile.get("delegates", ())}
    names = target.family.system_configs.get(target.system_config, ())
    try:
        with deadline.until(time.monotonic() + _TIMEOUT_S):
            found = {row.name: row for row in _priced(program, target, names, calls)}
    except SdkError as error:
        return {}, f"other memory modes could not be priced: {error.message}"
    if target.memory_mode not in found:
        return {}, f"vela.ini has no {target.system_config} with {target.memory_mode}"
    return found, ""


def _priced(
    program: pte.Pte, target: Target, names: tuple[str, ...], calls: Mapping[int, int]
) -> Iterator[Mode]:
    plan = program.plan()
    for name in names:
        system = system_config.known(target.npu, target.system_config, name)
        if system is None:
            continue
        cycles = 0
        for index, delegate in enumerate(plan.delegates):
            found = npu_rows.read(index, delegate, system)
            if found is None or found.stream is None:
                break
            cycles += calls.get(index, 0) * found.stream.cycles
        else:
            used = _sram_bytes(program, system)
            size = board(target.family.board).fast.size_bytes
            yield Mode(name, cycles, used, used <= size)


def _sram_bytes(program: pte.Pte, system: system_config.SystemConfig) -> int:
    """What lies in the memory of port 0 by the present sizes: arena, cache and constants, as the mode has them."""
    velas = [row.vela for row in program.plan().delegates if row.vela is not None]
    scratch = max((row.scratch_bytes for row in velas), default=0)
    used = scratch if system.arena.interface == 0 else min(scratch, system.cache_bytes or scratch)
    return used + (program.size if system.constants.interface == 0 else 0)


def module(row: Record) -> str:
    """The module of the model that a row, a layer or a call comes from; empty where that is not known."""
    return str(row.get("source", {}).get("module", ""))


def of(
    program: pte.Pte, profile: Record, compiled: Record, debug: Record, missing: Mapping[str, str]
) -> Facts:
    """The facts of `program`. Records that are not there are empty, and `missing` says why."""
    found, why = modes(program, profile)
    known = {kind: missing[kind] for kind in (COMPILE, DEBUG) if missing.get(kind)}
    return Facts(compiled, profile, debug, found, {**known, **({MODES: why} if why else {})})
