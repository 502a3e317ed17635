"""Published cycles of the CPU beside those of counted blocks and their prices."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.fidelity.comparison import ALL, DATA, Choice, Figure, rows
from campaigns.fidelity.cpu.kits import inference
from campaigns.fidelity.cpu.models import PROGRAMS, Program
from ethosu_sdk.base import board_profiles
from ethosu_sdk.simulate.cpu_cycles import LineWaits, cycles_of, wait_cycles

COLUMNS = {"model", "part", "core", "runtime", "cycles"}
WITHOUT_WAITS = "cycles without waits"
WITH_ASSUMED = "cycles with assumed waits"
CYCLES = "cycles"
_NEGLIGIBLE = 0.02  # of the cycles: then an assumption about the waits decides nothing


def is_table(path: Path) -> bool:
    """Whether a table has the columns of cpu_cycles.csv."""
    found = rows(path)
    return bool(found) and set(found[0]) >= COLUMNS


def figures(path: Path, choice: Choice = ALL) -> Iterator[Figure]:
    """The figures of a table of CPU cycles: with the waits of the board's memories where they are known."""
    for row, _ in choice.rows(path):
        run, published = f"{row['model']} {row['part']}", int(row["cycles"])
        build = PROGRAMS.get((row["model"], row["part"]))
        if build is None:
            known = ", ".join(sorted({f"{model} {part}" for model, part in PROGRAMS}))
            why = f"cannot be rebuilt here: its layers are not known (known are {known})"
            yield Figure(run, row["core"], CYCLES, published, why=why)
            continue
        program = build()
        plain = _cycles(program, row["core"])
        yield Figure(run, row["core"], WITHOUT_WAITS, published, round(plain), scored=False)
        if board := board_of(row["core"], row["runtime"]):
            waits = wait_cycles(program.work, board.waits)
            what = WITH_ASSUMED if board.assumed else CYCLES
            scored = not board.assumed or waits < _NEGLIGIBLE * plain
            yield Figure(run, row["core"], what, published, round(plain + waits), scored=scored)


@dataclass(frozen=True)
class Board:
    """The waits for the memories of a board; whether a figure of them is `assumed`."""

    waits: LineWaits
    assumed: bool


def board_of(core: str, runtime: str) -> Board | None:
    """The board that a row was measured on; None when it is not known."""
    for facts in _systems().values():
        if facts["rows"] == {"core": core, "runtime": runtime}:
            waits = _of_profile(facts) if "profile" in facts else LineWaits(**facts["line_cycles"])
            return Board(waits, facts["assumed"])
    return None


def _of_profile(facts: Mapping[str, Any]) -> LineWaits:
    """What the board profile that users name has: the rows are judged with it."""
    profile = board_profiles.find_profile(facts["profile"])
    memories = {part: profile.memory(name) for part, name in facts["memories"].items()}
    return LineWaits(
        **{part: row.cpu_wait_cycles or 0.0 for part, row in memories.items() if row is not None}
    )


@functools.cache
def _systems() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "cpu_systems.toml").read_text(encoding="utf-8"))


def _cycles(program: Program, core: str) -> float:
    blocks = inference(program.kit, program.model, program.inputs)
    prices = cycles_of(blocks, core)
    return sum(block.executions * price for block, price in zip(blocks, prices, strict=True))
