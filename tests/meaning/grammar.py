"""Models from the tables of idioms: which ones, in which order, and their files."""

import hashlib
import random
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.meaning import idiom
from tests.meaning.idiom import FORGOTTEN, Idiom, filled

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
def idioms() -> tuple[Idiom, ...]:
    """All rows of all tables."""
    folder = Path(__file__).with_name("idioms")
    rows = tuple(row for family in FAMILIES for row in idiom.read(folder / f"{family}.toml"))
    assert len({file_name(row) for row in rows}) == len(rows)
    return rows


def file_name(row: Idiom) -> str:
    """The name of an idiom in the names of files."""
    return re.sub(r"[^a-z0-9]+", "_", f"{row.family} {row.name}".lower()).strip("_")


def models(count: int, seed: int) -> list[Model]:
    """`count` models: every idiom before any a second time, but for the weights. The same arguments give the same."""
    found: dict[str, Model] = {}
    for row, number, slots in _choices(seed):
        model = _model(row, number, slots)
        found.setdefault(model.text, model)  # a row may have slots that not all of its texts use
        if len(found) == count:
            break
    return list(found.values())


def _choices(seed: int) -> Iterator[tuple[Idiom, int, dict[str, str]]]:
    queues = {row: _shuffled(row, seed) for row in idioms()}
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
