"""Whether a program fits the board that the user names: arithmetic with the sizes of the program and of the board
profile alone, whatever simulates the board.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.board_profiles import CODE, BoardProfile
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.firmware_build import memory_fit
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError, Requirements, aligned
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.program import pte
from ethosu_sdk.records.run import MemoryRole, MemoryUse

_RAM = ("sram", "dram")  # kinds of memories in which the CPU's buffers may lie


@dataclass(frozen=True)
class NamedBoard:
    """A board, and the `system` of its profile that a program is laid out for; the profile has areas for it."""

    profile: BoardProfile
    system: SystemConfig

    @property
    def _areas(self) -> dict[str, str]:
        row = self.profile.system(self.system.name)
        return {} if row is None else dict(row.areas)

    @property
    def is_known(self) -> bool:
        """Whether the profile says which of its memories hold what."""
        areas, system = self._areas, self.system
        names = (CODE, system.constants.name, system.arena.name, system.cache.name)
        return all(name in areas for name in names)

    def uses(self, needs: Requirements, code_bytes: int = 0) -> tuple[MemoryUse, ...]:
        """What a program with these `needs` takes of each memory, and its firmware's code where that is known. A
        program that was compiled for other memories lies where this system has its constants, arena and cache."""
        system, areas = self.system, self._areas
        arena, cache = areas[system.arena.name], areas[system.cache.name]
        rows: list[tuple[str, MemoryRole, int]] = [
            (areas[system.constants.name], "model", needs.model_bytes),
            (self._data_memory(needs), "data", sum(needs.data_bytes)),
            (arena, "scratch", needs.scratch_bytes),
            (cache, "fast_scratch", needs.fast_scratch_bytes or 0),
            (areas[CODE], "code", code_bytes),
        ]
        pools: list[tuple[MemoryRole, int]] = [
            ("planned", sum(aligned(size) for size in needs.planned_bytes)),
            ("method_pool", needs.method_pool_bytes),
        ]
        for role, size in pools:
            rows.append((self._ram_for(size, rows, (arena, cache)), role, size))
        return tuple(
            MemoryUse(memory=name, role=role, used_bytes=size, size_bytes=self._size(name))
            for name, role, size in rows
            if size
        )

    def _size(self, name: str) -> int | None:
        memory = self.profile.memory(name)
        return None if memory is None else memory.size_bytes

    def _data_memory(self, needs: Requirements) -> str:
        """Data files lie beside the constants, or at the port that --data-memory names."""
        areas, row = self._areas, self.profile.system(self.system.name)
        ports = {"SRAM": "axi0_port", "DDR": "axi1_port"}
        area = self.system.constants.name
        if row is not None and needs.data_memory in ports:
            area = str(row.settings[ports[needs.data_memory]])
        return areas[area]

    def _ram_for(self, size: int, rows: Sequence[tuple[str, MemoryRole, int]], first: tuple[str, str]) -> str:
        """The memory for a buffer of the CPU: that of the arena or of the cache, if it is RAM and has room, else any
        other RAM that has."""
        ram = [row.name for row in self.profile.memories if row.kind in _RAM]
        own = [name for name in first if name in ram] or [first[1]]
        for name in dict.fromkeys((*own, *ram)):
            limit = self._size(name)
            used = sum(taken for place, _, taken in rows if place == name)
            if limit is None or used + size <= limit:
                return name
        return own[0]


def named_board(profile: BoardProfile | None, system: SystemConfig | None) -> NamedBoard | None:
    """The board of `profile` with a `system` of it (None: its default); None where the profile does not say which of
    its memories hold what."""
    if profile is None:
        return None
    found = NamedBoard(profile, system or pricing_system.system_of_board(profile))
    return found if found.is_known else None


def board_of_program(path: Path, program: pte.Pte) -> NamedBoard | None:
    """The board that the `program` at `path` was compiled for, if it was for one that is known."""
    profile = pricing_system.board_of_program(path, program)
    priced = None if profile is None else pricing_system.pricing_of_program(path, program)
    return named_board(profile, None if priced is None else priced.system)


def board_of_options(program: pte.Pte, options: ProgramOptions) -> NamedBoard | None:
    """The board that `options` name, as `program` was just compiled with them."""
    if options.system is None:
        return None
    target = program.target()
    system = None if target is None else pricing_system.system_for_options(target, options)
    return named_board(board_profiles.find_profile(options.system), system)


def misfit(board: NamedBoard, needs: Requirements, code_bytes: int = 0) -> MemoryFitError | None:
    """The refusal, with the arithmetic and what would fit, of a program that `board` has no room for; None for one
    that fits. Memories whose sizes are not public are large enough."""
    rows = board.uses(needs, code_bytes)
    name = next(_overfull(rows), None)
    if name is None:
        return None
    own = [row for row in rows if row.memory == name]
    size, total = own[0].size_bytes or 0, sum(row.used_bytes for row in own)
    largest = max(own, key=lambda row: row.used_bytes)
    terms = " + ".join(f"{_words(row.role)} {row.used_bytes:,}" for row in own)
    needed = f"{terms} = {total:,} bytes" if len(own) > 1 else f"{terms} bytes"
    system, profile = board.system, board.profile
    mode, ways = "", list[str]()
    # Without an NPU there is no mode to compile for.
    other = None if needs.memory_mode is None else _other_system(board, needs, code_bytes)
    if other is not None:
        mode = other.memory_mode if other.name == system.name else ""
        ways.append(
            f"compile it again for {profile.name} with --system-config {other.name} --memory-mode "
            f"{other.memory_mode}, judging by this program's sizes"
        )
    pool = "MODEL_DATA" if largest.role == "data" else largest.role.upper()
    ways.append(memory_fit.SMALLER.get(pool, "use a smaller model or input"))
    return MemoryFitError(
        f"the {_words(largest.role)} does not fit {name} of {profile.name} with {system.name} in memory mode "
        f"{system.memory_mode}: {needed}, but it has {size:,} ({total - size:,} too many)",
        "; or ".join(ways),
        mode=mode,
        less_scratch=_fits(board, replace(needs, scratch_bytes=0, fast_scratch_bytes=0), code_bytes),
    )


def _words(role: str) -> str:
    return {"data": "data files", "planned": "planned memory"}.get(role, role.replace("_", " "))


def _overfull(rows: Sequence[MemoryUse]) -> Iterator[str]:
    taken: dict[tuple[str, int], int] = defaultdict(int)
    for row in rows:
        if row.size_bytes is not None:
            taken[row.memory, row.size_bytes] += row.used_bytes
    yield from (name for (name, size), used in taken.items() if used > size)


def _fits(board: NamedBoard, needs: Requirements, code_bytes: int) -> bool:
    return next(_overfull(board.uses(needs, code_bytes)), None) is None


def _other_system(board: NamedBoard, needs: Requirements, code_bytes: int) -> SystemConfig | None:
    """The first system of the board, the present one's other memory modes before the others, in which a program of
    these sizes fits."""
    present, profile = board.system, board.profile
    rows = sorted(profile.systems, key=lambda row: row.name != present.name)
    for row in rows:
        for mode in row.memory_modes:
            found = named_board(profile, pricing_system.system_of_board(profile, row.name, mode))
            if found is None or (row.name, mode) == (present.name, present.memory_mode):
                continue
            uses = found.uses(needs, code_bytes)
            if next(_overfull(uses), None) is None and all(use.size_bytes is not None for use in uses):
                return found.system
    return None
