"""A user's TOML file, which is not trusted: read with limits, and errors name the line.

Python's reader does not tell the lines of members; and some texts would cost it too much.
"""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, inspect
from msgspec.structs import fields

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import suggestion

Place = tuple[str | int, ...]  # keys of tables, and indices of arrays
_MOST_PARTS = 8  # of a dotted key: Python's reader keeps every beginning of one, which grows with the square
_MOST_DIGITS = 128  # of a number that is not decimal: one of more than 4300 decimal digits cannot be printed
_KEY = r"""(?:[\w-]++|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+')"""
_EXCESSES = {
    "deep": f"a key has more than {_MOST_PARTS} parts",
    "long": f"a number has more than {_MOST_DIGITS} digits",
}
# What is open at the end of a text goes to its end: nothing is read twice.
_TOKEN = re.compile(
    rf"""
    \#[^\n]*+
    | \"{{3}}(?:[^"\\]++|\\.|"(?!""))*+(?:"{{3,5}}|\Z)
    | '{{3}}(?:[^']++|'(?!''))*+(?:'{{3,5}}|\Z)
    | (?P<deep>{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_MOST_PARTS}}})
    | (?P<long>0[xob]\w{{{_MOST_DIGITS},}}+)
    | {_KEY}
    | (?P<opened>[\[{{])
    | (?P<closed>[\]}}])
    | (?P<line>\n)
    """,
    re.VERBOSE | re.DOTALL,
)


def toml_excess(text: str) -> tuple[int, str] | None:
    """The first thing that Python's reader must not be given: its line, from 1, and what it is; None without one.

    What stands behind the first mistake of a text may be taken for such a thing.
    """
    for token in _TOKEN.finditer(text):
        if token.lastgroup in _EXCESSES:
            return text.count("\n", 0, token.start()) + 1, _EXCESSES[token.lastgroup]
    return None


def line_of_member(text: str, place: Place) -> int:
    """The line, from 1, of a valid TOML `text` at which the member at `place` begins.

    What a text says of a member, it goes on to say with more lines: the first lines that are TOML and have the member
    end with it, and the last ones before that end above it.
    """
    ends = [0, *_ends(text)]
    first = bisect.bisect_left(ends, True, key=lambda end: _has(tomllib.loads(text[:end]), place))
    return text.count("\n", 0, ends[max(first, 1) - 1]) + 1


def _ends(text: str) -> Iterator[int]:
    """Behind which characters a line ends, and what was said with it."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token.lastgroup == "opened") - (token.lastgroup == "closed")
        if token.lastgroup == "line" and not depth:
            yield token.end()


def _has(data: Any, place: Place) -> bool:
    for key in place:
        if isinstance(key, int):
            if not isinstance(data, list) or key >= len(data):
                return False
        elif not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True


T = TypeVar("T")
_MOST_ROWS = 64
_HIDDEN = r"\x00-\x1f\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
# For the classes of tables: a message says what a member must be by its type, or with the `words` of `extra`.
Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=400,
        pattern=rf"\A[^{_HIDDEN}]*\Z",
        extra={"words": "a text of at most 400 printable characters"},
    ),
]
Texts = Annotated[list[Text], Meta(min_length=1, max_length=_MOST_ROWS)]
Rows = Annotated[
    dict[str, T], Meta(max_length=_MOST_ROWS, extra={"words": f"a table of at most {_MOST_ROWS} rows"})
]
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_MOST_SHOWN = 60


@dataclass(frozen=True)
class TomlSource:
    """What a file and its content are called in messages, and its text."""

    name: str
    text: str
    what: str = "the file"

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.name)

    def locate(self, place: Place) -> str:
        """``FILE:LINE`` of the member at `place`."""
        return f"{self.name}:{line_of_member(self.text, place)}"

    def wrong(self, place: Place, message: str, hint: str = "") -> InputError:
        """The error for the member at `place`."""
        return InputError(f"{self.locate(place)}: {message}", hint)

    def unknown(self, place: Place, message: str, word: str, known: Iterable[str]) -> InputError:
        """The error for `word` at `place`, which is behind `message` and is none of the `known` ones."""
        shown = short_word(word)
        return self.wrong(place, f"{message} '{shown}'", suggestion(shown, known))

    def convert(self, value: Any, kind: type[T], place: Place = ()) -> T:
        """`value`, the member at `place`, as the class `kind` of a table. InputError, with the line, the member and
        the nearest name, for what is none."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            name = short_word(str(place[-1])) if place else self.what
            where, message, hint = next(_faults(kind, value, place, name))
            raise self.wrong(where, message, hint) from None


@dataclass(frozen=True)
class TomlKind:
    """What a file is to be, in words, and how large it may be: to find a line takes time."""

    words: str
    most_bytes: int
    most_lines: int


def read_toml(path: Path, kind: TomlKind) -> tuple[TomlSource, dict[str, Any]]:
    """The file at `path` and its tables. InputError, with the line, when it is not TOML, or too large."""
    content = filesystem.file_content(path, kind.most_bytes)
    if len(content) > kind.most_bytes or content.count(b"\n") > kind.most_lines:
        raise InputError(
            f"{path} is too large for {kind.words}: {kind.most_bytes:,} bytes and {kind.most_lines:,} lines are the "
            "limit"
        )
    try:
        text = content.decode("utf-8")
        found = toml_excess(text)
        if found is None:
            return TomlSource(str(path), text, kind.words), tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error
    except RecursionError:
        raise InputError(f"{path} is not TOML: its brackets are nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of too many digits
        place = _AT_LINE.search(str(error))
        where = f"{path}:{place[1]}" if place else str(path)
        raise InputError(f"{where}: this is not TOML: {_AT_LINE.sub('', str(error)).strip()}") from error
    line, what = found
    raise InputError(f"{path}:{line}: {what}")


def short_word(text: str) -> str:
    """A text of the file's, as a message shows it: in one line."""
    text = "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: _MOST_SHOWN + 1]
    )
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _faults(kind: Any, value: Any, place: Place, what: str) -> Iterator[tuple[Place, str, str]]:
    """Where `value` is not a `kind`, what is wrong there, and a hint; `what` is how it is called."""
    bare = _bare(kind)
    if get_origin(bare) is list and _is_table(get_args(bare)[0]) and isinstance(value, list):
        for index, row in enumerate(value):
            yield from _faults(get_args(bare)[0], row, (*place, index), f"[[{place[-1]}]]")
    elif get_origin(bare) is dict and isinstance(value, dict):
        for key, row in value.items():
            yield from _faults(get_args(bare)[1], row, (*place, key), short_word(key))
    elif _is_table(bare) and isinstance(value, dict):
        yield from _faults_of_members(bare, value, place, what)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        if names := _names(kind):
            word = short_word(value) if isinstance(value, str) else type(value).__name__
            yield place, f"{what} cannot be '{word}'", suggestion(word, names)
        else:
            yield place, f"{what} must be {_words(kind)}", ""


def _bare(kind: Any) -> Any:
    """`kind` without its bounds, and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    others = [part for part in get_args(kind) if part is not type(None)]
    return _bare(others[0]) if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _faults_of_members(
    table: type[Struct], value: dict[str, Any], place: Place, what: str
) -> Iterator[tuple[Place, str, str]]:
    hints = get_type_hints(table, include_extras=True)
    kinds = {field.encode_name: hints[field.name] for field in fields(table)}
    for key in value:
        if key not in kinds:
            yield (*place, key), f"{what} has no '{short_word(key)}'", suggestion(short_word(key), kinds)
    for field in fields(table):
        name = field.encode_name
        if name in value:
            yield from _faults(kinds[name], value[name], (*place, name), name)
        elif field.required:
            yield place, f"{what} has no {name}", f"{name} must be {_words(kinds[name])}"


def _parts(info: inspect.Type) -> list[inspect.Type]:
    """What a member may be, apart."""
    if isinstance(info, inspect.Metadata) and "words" not in (info.extra or {}):
        return _parts(info.type)
    if isinstance(info, inspect.UnionType):
        return [part for member in info.types for part in _parts(member)]
    return [] if isinstance(info, inspect.NoneType) else [info]


def _names(kind: Any) -> list[str]:
    """The words that a member may be."""
    bare = _bare(kind)
    return list(map(str, get_args(bare))) if get_origin(bare) is Literal else []


def _words(kind: Any) -> str:
    """What a member must be, as a sentence says it."""
    if names := _names(kind):
        return "one of: " + ", ".join(names)
    parts = _parts(inspect.type_info(kind))
    if any(isinstance(part, inspect.FloatType) for part in parts):
        parts = [part for part in parts if not isinstance(part, inspect.IntType)]
    return " or ".join(dict.fromkeys(map(_word, parts)))


def _word(info: inspect.Type) -> str:
    if isinstance(info, inspect.Metadata):
        return str((info.extra or {})["words"])
    if isinstance(info, inspect.IntType):
        return f"a whole number from {info.ge or 0:,} to {info.le or 0:,}"
    if isinstance(info, inspect.FloatType):
        return f"a number from {info.ge or 0:g} to {info.le or 0:g}"
    if isinstance(info, inspect.ListType):
        rows = "tables" if isinstance(info.item_type, inspect.StructType) else "texts"
        return f"a list of {rows}" + (", not empty" if info.min_length else "")
    return {inspect.BoolType: "true or false", inspect.StrType: "a text"}.get(type(info), "a table")
