"""A script of calls, as its TOML file has it: which methods run in turn, for how many steps, with which inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import feeds, protocol
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.feeds import Feed
from ethosu_sdk.files import toml_source
from ethosu_sdk.files.toml_source import Kind, TomlSource, short
from ethosu_sdk.targets import suggestion

_KIND = Kind("a script of calls", 1 << 20, 20_000)
_CALL = "call"
_MEMBERS = ("method", "inputs", "steps", "feed", "take")
_MOST_STEPS = 65_536
_HINT = "give tables [[call]] with method = 'NAME'; docs/guide/methods.md has an example"


@dataclass(frozen=True)
class Call:
    """`steps` inferences of `method` in a row (None: as many as the inputs have) with the inputs in a file (None: the
    example inputs). `feed` works inside of the call; `take` makes inputs of the first step from the outputs of the
    call before. `place` is its line of the script."""

    method: str
    inputs: Path | None = None
    steps: int | None = None
    feed: tuple[str, ...] = ()
    take: tuple[Feed, ...] = ()
    place: str = ""


def read(path: Path, methods: Sequence[str]) -> tuple[Call, ...]:
    """The calls of the script at `path`, for a program with these methods. InputError, with the line, for what is no
    script or does not fit."""
    source, table = toml_source.read(path, _KIND)
    for name in table:
        if name != _CALL:
            raise source.wrong((name,), f"'{short(name)}' is no member of a script", _HINT)
    rows = table.get(_CALL)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} has no calls", _HINT)
    if len(rows) > protocol.SEQUENCE_MAX_CALLS:
        raise InputError(f"{path} has {len(rows):,} calls; the limit is {protocol.SEQUENCE_MAX_CALLS:,}")
    found = tuple(_call(source, number, row, methods, path.parent) for number, row in enumerate(rows))
    if found[0].take:
        raise source.wrong((_CALL, 0, "take"), "the first call has no call before it to take anything from")
    return found


def _call(source: TomlSource, number: int, row: dict[str, Any], methods: Sequence[str], folder: Path) -> Call:
    for name in row:
        if name not in _MEMBERS:
            raise source.wrong(
                (_CALL, number, name), f"'{short(name)}' is no member of a call", suggestion(name, _MEMBERS)
            )
    return Call(
        method=_method(source, number, row.get("method"), methods),
        inputs=_inputs(source, number, row.get("inputs"), folder),
        steps=_steps(source, number, row.get("steps")),
        feed=tuple(map(str, _feeds(source, number, "feed", row))),
        take=_takes(source, number, row),
        place=source.locate((_CALL, number)),
    )


def _method(source: TomlSource, number: int, value: Any, methods: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise source.wrong((_CALL, number), "a call needs a method", _HINT)
    if value not in methods:
        message = f"the program has no method '{short(value)}'"
        raise source.wrong((_CALL, number, "method"), message, suggestion(value, methods))
    return value


def _steps(source: TomlSource, number: int, value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 1 <= value <= _MOST_STEPS):
        message = f"steps must be a whole number from 1 to {_MOST_STEPS:,}"
        raise source.wrong((_CALL, number, "steps"), message)
    return value


def _inputs(source: TomlSource, number: int, value: Any, folder: Path) -> Path | None:
    if value is None:
        return None
    place = (_CALL, number, "inputs")
    if not isinstance(value, str) or not value or "\0" in value:
        raise source.wrong(place, "inputs must be the name of an .npz file")
    if not (folder / value).is_file():
        message = f"there is no file {short(str(folder / value))}"
        raise source.wrong(place, message, "it is searched beside the script")
    return folder / value


def _takes(source: TomlSource, number: int, row: dict[str, Any]) -> tuple[Feed, ...]:
    found = _feeds(source, number, "take", row)
    for feed in found:
        if feed.form == feeds.STEP or feed.stops:
            message = f"'{feed}' cannot be taken from another call"
            raise source.wrong((_CALL, number, "take"), message, "take an output, or a choice without stop")
    return found


def _feeds(source: TomlSource, number: int, name: str, row: dict[str, Any]) -> tuple[Feed, ...]:
    try:
        return feeds.parse(_texts(source, number, name, row.get(name, [])))
    except UsageError as error:
        raise source.wrong((_CALL, number, name), error.message, error.hint) from error


def _texts(source: TomlSource, number: int, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise source.wrong(
            (_CALL, number, name), f"{name} must be a list of texts, such as ['output0:input1']"
        )
    return tuple(value)
