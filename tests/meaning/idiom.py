"""A row of the tables in `idioms/*.toml`: a way to write a model, with slots that are filled in turn."""

import itertools
import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

# A mix as users have it. Each word is the value of `--quantize`.
USUAL = ("int8", "int8", "int8", "int16", "none")

FORGOTTEN = "forgotten"  # as `lost`: the model as it is, made anew for each sample


@dataclass(frozen=True, eq=False)
class Idiom:
    """One way to write a model.

    `forward` and `init` are bodies of the methods, `inputs` are expressions that draw one input each; the arguments
    of `forward` are x, b, c and d. A slot is a name in `slots` with its values, written ``$name`` in the texts, or
    several names separated by commas with a tuple of values for each choice. `lost` is the body of a `forward` that
    has lost the idiom: the judge must tell the two apart. `examples` replaces the line that makes the example inputs.
    """

    family: str
    name: str
    forward: str
    inputs: tuple[str, ...] = ("torch.rand(1, 8) * 2 - 1",)
    init: str = ""
    slots: Mapping[str, tuple[str | tuple[str, ...], ...]] = field(default_factory=dict)
    lost: str = ""
    quantize: tuple[str, ...] = USUAL
    header: str = ""
    examples: str = "example_inputs = draw()"
    weight: int = 1  # how often it is taken while others are taken once

    def variants(self) -> Iterator[dict[str, str]]:
        """Every way to fill the slots."""
        names = [[name.strip() for name in key.split(",")] for key in self.slots]
        for choice in itertools.product(*self.slots.values()):
            values = [(value,) if isinstance(value, str) else value for value in choice]
            yield {
                name: text
                for group, texts in zip(names, values, strict=True)
                for name, text in zip(group, texts, strict=True)
            }


def filled(text: str, slots: Mapping[str, str]) -> str:
    """`text` with its slots filled; a slot's value may hold slots."""
    while "$" in text:
        text = string.Template(text).substitute(slots)
    return text


def read(file: Path) -> list[Idiom]:
    """The rows of a table, a family's; `<name>` in a text of a kind stands for that member of the row."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [_idiom(file.stem, row, table.get("kinds", {})) for row in table["idiom"]]


def _idiom(family: str, row: dict[str, Any], kinds: dict[str, dict[str, Any]]) -> Idiom:
    members = _with_kind({"kind": "plain", **row}, kinds)
    inputs, slots = members.pop("inputs", []), members.pop("slots", {})
    if inputs:
        members["inputs"] = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    known = {field.name for field in fields(Idiom)}
    words = {name: members.pop(name) for name in members.keys() - known}
    for name, text in members.items():
        if isinstance(text, str):
            members[name] = re.sub("<([a-z]+)>", lambda match: words.get(match[1], match[0]), text).strip(
                "\n"
            )
    if "quantize" in members:
        members["quantize"] = tuple(members["quantize"])
    return Idiom(
        family=family, slots={name: tuple(map(_value, row)) for name, row in slots.items()}, **members
    )


def _with_kind(row: dict[str, Any], kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """`row`, and what it leaves to its kind."""
    base = _with_kind(kinds[row["kind"]], kinds) if row.get("kind") in kinds else {}
    slots = {**base.get("slots", {}), **row.get("slots", {})}
    return {**base, **{name: value for name, value in row.items() if name != "kind"}, "slots": slots}


def _value(text: str | list[str]) -> str | tuple[str, ...]:
    return text if isinstance(text, str) else tuple(text)
