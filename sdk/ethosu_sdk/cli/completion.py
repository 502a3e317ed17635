"""What the shell completes: Typer asks for it, and the shell itself completes files where nothing is offered."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable
from typing import Any

from ethosu_sdk.base import boards, resources
from ethosu_sdk.base.targets import families, target_names
from ethosu_sdk.compile.program_options import Completion, Option

PROGRAM = "ethosu-sdk"


def completer_of(row: Option) -> Callable[..., list[str]] | None:
    """The function that gives the values of an option which the shell offers; None for those of no list."""
    if not row.choices and row.completion is None:
        return None
    return lambda: list(row.choices or _OFFERS[row.completion]())  # type: ignore[index]


def _memory_modes() -> Iterable[str]:
    return dict.fromkeys(
        mode for row in families().values() for modes in row.system_configs.values() for mode in modes
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.PACKAGE_ROOT / name).read_text(encoding="utf-8"))


def _zoo() -> Iterable[str]:
    return _table("compile/zoo/zoo.toml")


# Read from the tables, without importing their packages: a shell waits for this at every Tab.
_OFFERS: dict[Completion, Callable[[], Iterable[str]]] = {
    "targets": target_names,
    "system_configs": lambda: [name for row in families().values() for name in row.system_configs],
    "memory_modes": _memory_modes,
    "systems": boards.system_names,
    "models": lambda: [f"zoo:{name}" for name in _zoo()],
}


def take_zoo_out() -> None:
    """bash cuts ``zoo:add`` at its colon into three words, and wants back only what follows it."""
    words, cursor = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    place = next((at for at in range(len(words) - 1) if words[at : at + 2] == ["zoo", ":"]), None)
    if place is not None and cursor.isdecimal() and place < int(cursor):
        del words[place : place + 2]
        os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(max(place, int(cursor) - 2))}
        _OFFERS["models"] = _zoo
