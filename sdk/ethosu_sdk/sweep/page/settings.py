"""The settings that vary between cells, and those beside and above the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk import plain_text

Row = Mapping[str, object]

MODEL, TARGET, SYSTEM, MODE = "model", "target", "system", "memory_mode"
TITLES = {
    MODEL: "model",
    TARGET: "target",
    SYSTEM: "system",
    "system_config": "system config",
    MODE: "memory mode",
    "quantize": "quantised",
    "vela": "Vela",
    "simulator": "simulator",
    "board": "board",
    "inputs": "inputs",
}
_HARDWARE = (TARGET, SYSTEM, "system_config", MODE)
_OF_A_TARGET = ("system_config", "board")  # follow from target and system, unless they have several
MOST_NAME, MOST_MESSAGE = 200, 2000


@dataclass(frozen=True)
class Settings:
    """Names of settings: `varying` ones tell cells apart; `fixed` ones are the same in all, with their value."""

    varying: tuple[str, ...]
    fixed: Mapping[str, str]

    @property
    def beside(self) -> list[str]:
        """What a row of the matrix stands for."""
        return [MODEL, *(name for name in self.varying if name not in (MODEL, *_HARDWARE))]

    @property
    def above(self) -> list[str]:
        """What a column of the matrix stands for."""
        return [name for name in _HARDWARE if name in self.varying or name in (TARGET, MODE)]

    @property
    def shown(self) -> list[str]:
        """Those that have a column in the list of cells."""
        return [name for name in TITLES if name in {*self.beside, *self.above}]

    def words(self, row: Row) -> str:
        """The settings that distinguish the cell `row` from the model's other cells."""
        names = [name for name in self.shown if name != MODEL]
        return " · ".join(text for name in names if (text := short(row.get(name))))


def of(rows: Sequence[Row]) -> Settings:
    """The settings of `rows`."""
    varying = tuple(name for name in TITLES if _varies(name, rows))
    fixed = {}
    for name in TITLES:
        values = {short(row.get(name)) for row in rows}
        if len(values) == 1 and (value := values.pop()):
            fixed[name] = value
    return Settings(varying, fixed)


def _varies(name: str, rows: Sequence[Row]) -> bool:
    if name not in _OF_A_TARGET:
        return len({row.get(name) for row in rows}) > 1
    found = {(row.get(TARGET), row.get(SYSTEM), row.get(name)) for row in rows}
    return len(found) > len({place[:2] for place in found})


def short(value: object, most: int = MOST_NAME) -> str:
    """A text from elsewhere on one line, shortened; empty for None."""
    if value is None:
        return ""
    return plain_text.cut(str(value)[: most + 1], most)  # what is behind that is not even looked at
