"""What a program's command streams cost in other memory modes, and what its NPU computes at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.boards import board
from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results.run_facts import Mode, ProgramFacts
from ethosu_sdk.steps.profile import npu_rows
from ethosu_sdk.targets import Target

_TIMEOUT_S = 60.0
_FIXED_STEP = ("ethos-u55", "ethos-u65")  # Ethos-U85 chooses its step for each operation


def read(path: Path, profile: Profile) -> ProgramFacts:
    """The facts of the program at `path`; see :func:`of`."""
    return of(pte.read(path), profile)


def of(program: pte.Pte, profile: Profile) -> ProgramFacts:
    """The facts of `program`, of which `profile` says how often each delegate is called."""
    target = program.target()
    if target is None:
        return ProgramFacts(modes_reason="the program delegates nothing to an NPU")
    step = None
    if target.npu in _FIXED_STEP:
        config = NpuConfig.for_target(target.npu, target.macs)
        step = config.micro_block[2] * config.cores
    modes, reason = _modes(program, target, profile)
    return ProgramFacts(modes, reason, step)


def _modes(program: pte.Pte, target: Target, profile: Profile) -> tuple[dict[str, Mode], str]:
    """The program in each memory mode that its system configuration has, and why there is none.

    The command streams are priced as they are with the memories of the other mode: Vela would schedule anew.
    """
    calls = {row.index: row.calls for row in profile.delegates}
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
