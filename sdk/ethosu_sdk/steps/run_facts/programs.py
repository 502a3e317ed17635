"""What a program's command streams cost in other memory modes, and what its NPU computes at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.boards import board
from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results.run_facts import Mode, ProgramFacts
from ethosu_sdk.steps.profile import npu_rows
from ethosu_sdk.steps.shared import systems
from ethosu_sdk.targets import Target

_TIMEOUT_S = 60.0
_FIXED_STEP = ("ethos-u55", "ethos-u65")  # Ethos-U85 chooses its step for each operation


def read(path: Path, profile: Profile, vela_config: Path | None = None) -> ProgramFacts:
    """The facts of the program at `path`; see :func:`of`."""
    return of(pte.read(path), profile, vela_config)


def of(program: pte.Pte, profile: Profile, vela_config: Path | None = None) -> ProgramFacts:
    """The facts of `program`, of which `profile` says how often each delegate is called and what was priced.

    `vela_config` is the Vela configuration file that has the other memory modes, where the system is the user's own.
    """
    target = program.target()
    if target is None:
        return ProgramFacts(modes_reason="the program delegates nothing to an NPU")
    step = None
    if target.npu in _FIXED_STEP:
        config = NpuConfig.for_target(target.npu, target.macs)
        step = config.micro_block[2] * config.cores
    try:
        with deadline.until(time.monotonic() + _TIMEOUT_S):
            systems_of_modes = list(_systems(target, profile, vela_config))
            modes, reason = _modes(program, target, profile, systems_of_modes)
    except SdkError as error:
        modes, reason = {}, f"other memory modes could not be priced: {error.message}"
    return ProgramFacts(modes, reason, step)


def _systems(target: Target, profile: Profile, vela_config: Path | None) -> Iterator[SystemConfig]:
    """The system in each memory mode: of the file `vela_config`, of vela.ini, or else in the one that was priced."""
    if vela_config is not None:
        yield from systems.in_every_mode(vela_config, target)
        return
    if target.vela_config:
        if profile.priced is not None and profile.priced.compiled_for:
            yield systems.of_record(profile.priced.system)
        return
    for name in target.family.system_configs.get(target.system_config, ()):
        system = system_config.known(target.npu, target.system_config, name)
        if system is not None:
            yield system


def _modes(
    program: pte.Pte, target: Target, profile: Profile, found: Sequence[SystemConfig]
) -> tuple[dict[str, Mode], str]:
    """The program in the memory mode of each system, and why there is none.

    The command streams are priced as they are with the memories of the other mode: Vela would schedule anew.
    """
    calls = {row.index: row.calls for row in profile.delegates}
    modes = {row.name: row for row in _priced(program, target, found, calls)}
    if target.memory_mode not in modes:
        return {}, f"the memories of {target.system_config} with {target.memory_mode} are not known here"
    return modes, ""


def _priced(
    program: pte.Pte, target: Target, found: Sequence[SystemConfig], calls: Mapping[int, int]
) -> Iterator[Mode]:
    plan = program.plan()
    for system in found:
        cycles = 0
        for index, delegate in enumerate(plan.delegates):
            read_delegate = npu_rows.read(index, delegate, system)
            if read_delegate is None or read_delegate.stream is None:
                break
            cycles += calls.get(index, 0) * read_delegate.stream.cycles
        else:
            used = sram_bytes(program, system)
            size = board(target.family.board).fast.size_bytes
            yield Mode(system.memory_mode, cycles, used, used <= size)


def sram_bytes(program: pte.Pte, system: SystemConfig) -> int:
    """What lies in the memory of port 0 by the present sizes: arena, cache and constants, as the mode has them."""
    velas = [row.vela for row in program.plan().delegates if row.vela is not None]
    scratch = max((row.scratch_bytes for row in velas), default=0)
    used = scratch if system.arena.interface == 0 else min(scratch, system.cache_bytes or scratch)
    return used + (program.size if system.constants.interface == 0 else 0)
