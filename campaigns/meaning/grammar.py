"""Models from the tables of idioms: which ones, in which order, and their files."""

import hashlib
import itertools
import random
import re
import string
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

FAMILIES = (
    "writes",
    "state",
    "caches",
    "aliases",
    "shapes",
    "outputs",
    "dtypes",
    "branches",
    "operators",
    "layers",
    "blocks",
)
# What upstream lost once: judged when they are named, not on the page.
MENDED = ("batch", "norms", "crops", "cortex-m")
ARGUMENTS = ("x", "b", "c", "d")
CALIBRATION_SAMPLES, SAMPLES = 16, 4

_FILE = """\
# {family}: {name} (--quantize {quantize})
import torch
import torch.nn.functional as F
from torch import nn
{header}
torch.manual_seed({seed})


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}
    def forward(self, {arguments}):
{forward}


def draw():
    return ({inputs},)


model = Model().eval()
{examples}
calibration = [draw() for _ in range({calibration})]
samples = calibration[:{samples}]  # those that the outputs are compared on, one after the other
"""


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


def _read(file: Path) -> list[Idiom]:
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


@dataclass(frozen=True)
class Model:
    """A generated model: the file as a user would write it, how to quantise it, and the file that has lost the idiom.

    Without `lost` there is none; FORGOTTEN stands for the same file, made anew for each sample.
    """

    name: str
    family: str
    idiom: str
    quantize: str
    text: str
    lost: str = ""

    @property
    def digest(self) -> str:
        """Tells whether an outcome is of this file."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


@cache
def idioms(families: tuple[str, ...] = FAMILIES) -> tuple[Idiom, ...]:
    """All rows of the tables of these families."""
    folder = Path(__file__).with_name("idioms")
    rows = tuple(row for family in families for row in _read(folder / f"{family}.toml"))
    assert len({file_name(row) for row in rows}) == len(rows)
    return rows


def file_name(row: Idiom) -> str:
    """The name of an idiom in the names of files."""
    return re.sub(r"[^a-z0-9]+", "_", f"{row.family} {row.name}".lower()).strip("_")


def models(count: int, seed: int, families: tuple[str, ...] = FAMILIES) -> list[Model]:
    """`count` models of these families: every idiom before any a second time, but for the weights. The same arguments
    give the same."""
    found: dict[str, Model] = {}
    for row, number, slots in _choices(seed, families):
        model = _model(row, number, slots)
        found.setdefault(model.text, model)  # a row may have slots that not all of its texts use
        if len(found) == count:
            break
    return list(found.values())


def _choices(seed: int, families: tuple[str, ...]) -> Iterator[tuple[Idiom, int, dict[str, str]]]:
    queues = {row: _shuffled(row, seed) for row in idioms(families)}
    lengths = {row: len(queue) for row, queue in queues.items()}
    order = random.Random(seed)
    while any(queues.values()):
        turns = [row for row, queue in queues.items() for _ in range(min(row.weight, len(queue)))]
        order.shuffle(turns)
        for row in turns:
            slots = queues[row].pop()
            yield row, lengths[row] - len(queues[row]), slots


def _shuffled(row: Idiom, seed: int) -> list[dict[str, str]]:
    """The ways to fill a row's slots, each with one way to quantise."""
    chance = random.Random(f"{seed} {row.family} {row.name}")
    found = list(row.variants())
    chance.shuffle(found)
    return [{**variant, "quantize": chance.choice(row.quantize)} for variant in found]


def _model(row: Idiom, number: int, slots: dict[str, str]) -> Model:
    text = _file(row, row.forward, slots)
    lost = row.lost if row.lost in ("", FORGOTTEN) else _file(row, row.lost, slots)
    return Model(f"{file_name(row)}_{number}", row.family, row.name, slots["quantize"], text, lost)


def _file(row: Idiom, forward: str, slots: dict[str, str]) -> str:
    init = "" if row.init == "pass" else textwrap.indent(filled(row.init, slots), " " * 8) + "\n"
    header = f"\n\n{filled(row.header, slots)}\n" if row.header else ""
    return _FILE.format(
        family=row.family,
        name=row.name,
        quantize=slots["quantize"],
        header=header,
        seed=0,
        init=init,
        arguments=", ".join(ARGUMENTS[: len(row.inputs)]),
        forward=textwrap.indent(filled(forward, slots), " " * 8),
        inputs=", ".join(filled(text, slots) for text in row.inputs),
        examples=row.examples,
        calibration=CALIBRATION_SAMPLES,
        samples=SAMPLES,
    )
