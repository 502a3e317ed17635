"""The parameters (-C NAME=VALUE) that a launcher knows (parameters.toml), and reading their values."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.errors import UsageError
from ethosu_sdk.simulators.fvp.models import FvpModel

Value = bool | int | str
_BOOLEANS = {"1": True, "0": False, "true": True, "false": False}
_SSE_320_BOARD = "corstone-320"


@dataclass(frozen=True)
class Parameter:
    """One parameter. An `honoured` one does something; `allowed` are the values of one that cannot be chosen."""

    name: str
    kind: str
    honoured: bool
    allowed: tuple[int, ...]

    def read(self, text: str) -> Value:
        """The value of `text`. UsageError when it is not of this kind, or not available here."""
        value = self._convert(unquoted(text))
        if self.allowed and value not in self.allowed:
            known = " or ".join(f"{row:#x}" for row in self.allowed)
            raise UsageError(
                f"parameter error: {self.name}={text}: value is out of range",
                f"the simulated board has {known} only",
            )
        return value

    def _convert(self, text: str) -> Value:
        try:
            if self.kind == "boolean":
                return _BOOLEANS[text.lower()]
            if self.kind == "integer":
                return int(text, 0)
        except (KeyError, ValueError) as error:
            raise UsageError(f"parameter error: {self.name}={text} is not of type {self.kind}") from error
        return text


def unquoted(text: str) -> str:
    """`text` without the quotation marks around it: scripts pass them on where no shell takes them off."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def known_parameters(model: FvpModel) -> dict[str, Parameter]:
    """The parameters of the launcher for `model`, by name."""
    rows = tomllib.loads((Path(__file__).parent / "parameters.toml").read_text(encoding="utf-8"))[
        "parameters"
    ]
    found: dict[str, Parameter] = {}
    for row in _expanded(rows, model):
        found.setdefault(row.name, row)  # uart0 has rows of its own, before those for every UART
    return found


def _expanded(rows: list[dict[str, Any]], model: FvpModel) -> Iterator[Parameter]:
    for row in rows:
        if row.get("only") == "SSE-320" and model.board != _SSE_320_BOARD:
            continue
        allowed = tuple(row.get("allowed", ()))
        if "INITSVTOR" in row["name"]:
            allowed = (*allowed, *model.vectors)
        names = {
            row["name"].format(**model.instances, terminal=terminal)
            for terminal in (model.terminals if "{terminal}" in row["name"] else (0,))
        }
        for name in sorted(names):
            yield Parameter(name, row["kind"], row["use"] == "honoured", allowed)


def read_assignment(text: str, known: dict[str, Parameter]) -> tuple[str, Value]:
    """``NAME=VALUE`` → name and value. UsageError for an unknown name or an impossible value."""
    name, equals, value = unquoted(text).partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"parameter error: '{text}' is not NAME=VALUE")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        raise UsageError(
            f"parameter error: there is no parameter '{name}'",
            "".join(f"did you mean '{row}'? " for row in near) + "--list-params shows all",
        )
    return name, known[name].read(value.strip())
