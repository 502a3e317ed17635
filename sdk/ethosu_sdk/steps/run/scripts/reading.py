"""A script of calls, as its TOML file has it: which methods run in turn, for how many steps, with which inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ethosu_sdk import feeds, protocol
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.feeds import Feed
from ethosu_sdk.files import toml_source
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import Kind, TomlSource, short
from ethosu_sdk.targets import suggestion

_KIND = Kind("a script", 1 << 20, 20_000)
_CALL = "call"
_HINT = "give tables [[call]] with method = 'NAME'; docs/guide/methods.md has an example"


class _Row(Struct, forbid_unknown_fields=True):
    method: str
    inputs: (
        Annotated[str, Meta(pattern=r"\A[^\0]+\Z", extra={"words": "the name of an .npz file"})] | None
    ) = None
    steps: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    feed: list[str] = []
    take: list[str] = []


class _File(Struct, forbid_unknown_fields=True):
    call: list[_Row] = []


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
    rows = source.convert(table, _File).call
    if not rows:
        raise InputError(f"{path} has no calls", _HINT)
    if len(rows) > protocol.SEQUENCE_MAX_CALLS:
        raise InputError(f"{path} has {len(rows):,} calls; the limit is {protocol.SEQUENCE_MAX_CALLS:,}")
    found = tuple(_call(source, number, row, methods, path.parent) for number, row in enumerate(rows))
    if found[0].take:
        raise source.wrong((_CALL, 0, "take"), "the first call has no call before it to take anything from")
    return found


def _call(source: TomlSource, number: int, row: _Row, methods: Sequence[str], folder: Path) -> Call:
    place = (_CALL, number)
    if row.method not in methods:
        message = f"the program has no method '{short(row.method)}'"
        raise source.wrong((*place, "method"), message, suggestion(short(row.method), methods))
    inputs = None if row.inputs is None else folder / row.inputs
    if inputs is not None and not inputs.is_file():
        message = f"there is no file {short(str(inputs))}"
        raise source.wrong((*place, "inputs"), message, "it is searched beside the script")
    take = _feeds(source, (*place, "take"), row.take)
    for feed in take:
        if feed.form == feeds.STEP or feed.stops:
            message = f"'{feed}' cannot be taken from another call"
            raise source.wrong((*place, "take"), message, "take an output, or a choice without stop")
    return Call(
        method=row.method,
        inputs=inputs,
        steps=row.steps,
        feed=tuple(map(str, _feeds(source, (*place, "feed"), row.feed))),
        take=take,
        place=source.locate(place),
    )


def _feeds(source: TomlSource, place: Place, texts: Sequence[str]) -> tuple[Feed, ...]:
    try:
        return feeds.parse(tuple(texts))
    except UsageError as error:
        raise source.wrong(place, error.message, error.hint) from error
