"""Tables of users' files as classes: a fault is named by its line, its member and the nearest name."""

import tomllib
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.toml_source import Rows, Text, Texts, TomlSource
from tests.tables import each

Number = Annotated[int, Meta(ge=1, le=9)] | Annotated[float, Meta(ge=0.5, le=9.0)]


class Inner(Struct, forbid_unknown_fields=True):
    size: Annotated[int, Meta(ge=1, le=1000)]
    kind: Literal["sram", "dram"] = "sram"


class Outer(Struct, forbid_unknown_fields=True):
    title: Text = "x"
    names: Texts | None = None
    number: Number | None = None
    flag: bool = False
    row: list[Inner] = []
    memories: Rows[Inner] = {}


def convert(text: str) -> Outer:
    return TomlSource("a.toml", text, "a file").convert(tomllib.loads(text), Outer)


def test_values_are_as_they_were_written() -> None:
    assert convert("number = 1").number.__class__ is int
    assert convert("number = 1.0").number.__class__ is float
    assert convert("[[row]]\nsize = 3").row == [Inner(3)]


@each(
    ("text", "said"),
    [
        ("\ntitel = 'x'", "a.toml:2: a file has no 'titel' did you mean 'title'?"),
        ("title = ''", "a.toml:1: title must be a text of at most 400 printable characters"),
        (r'title = "\u202E"', "a.toml:1: title must be a text of at most 400"),
        ("names = 'x'", "a.toml:1: names must be a list of texts, not empty"),
        ("names = ['x',\n1]", "a.toml:1: names must be a list of texts, not empty"),
        ("number = nan", "a.toml:1: number must be a number from 0.5 to 9"),
        ("number = true", "a.toml:1: number must be a number from 0.5 to 9"),
        (f"number = {10**400}", "a.toml:1: number must be a number from 0.5 to 9"),
        ("flag = 1", "a.toml:1: flag must be true or false"),
        ("row = 1", "a.toml:1: row must be a list of tables"),
        ("row = [1]", "a.toml:1: [[row]] must be a table"),
        ("[[row]]\nsize = 1\n[[row]]\nsise = 1", "a.toml:4: [[row]] has no 'sise' did you mean 'size'?"),
        (
            "[[row]]\n[[row]]\nsize = 1",
            "a.toml:1: [[row]] has no size size must be a whole number from 1 to 1,000",
        ),
        ("memories = 1", "a.toml:1: memories must be a table of at most 64 rows"),
        ("[memories]\nA = 1", "a.toml:2: A must be a table"),
        ("[memories.A]\nsize = 1\nkind = 'sran'", "a.toml:3: kind cannot be 'sran' did you mean 'sram'?"),
        ("[memories.A]\nsize = 1\nkind = []", "a.toml:3: kind cannot be 'list' "),
        ("[memories.A]\nsize = 1.0", "a.toml:2: size must be a whole number from 1 to 1,000"),
        ('"x` - at `$.title" = 1', "a.toml:1: a file has no 'x` - at `$.title'"),
        ('"a\\nb" = 1', r"a.toml:1: a file has no 'a\nb'"),
    ],
)
def test_a_fault_is_named(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        convert(text)
    assert f"{caught.value.message} {caught.value.hint}".startswith(said)
    assert "\n" not in caught.value.message
