"""The way of one run, module by module, as docs/internals/architecture.md lists it."""

import itertools
import re
from dataclasses import dataclass

from tests.places import ROOT

ARCHITECTURE = ROOT / "docs" / "internals" / "architecture.md"
MOST = 60
HELPERS = ("base", "records", "program", "npu")  # rooms of which a run enters more than the way has
_MODULE = re.compile(r"`([a-z0-9_/]+)\.py`")


@dataclass(frozen=True)
class Way:
    """The modules of the way in their order, and the others that a run enters, beside those of HELPERS."""

    listed: tuple[str, ...]
    others: frozenset[str]


def written() -> Way:
    """The way that the page has."""
    section = ARCHITECTURE.read_text(encoding="utf-8").partition("## One run, module by module")[2]
    steps, _, rest = section.partition("\nA run enters other modules")
    return Way(tuple(_modules(steps)), frozenset(_modules(rest.partition("\n\n")[0])))


def _modules(page: str) -> list[str]:
    return [name.removesuffix("/__init__").replace("/", ".") for name in _MODULE.findall(page)]


def differences(way: Way, entered: list[str]) -> list[str]:
    """What a run that `entered` these modules, in this order, does otherwise than the page says."""
    found = [
        f"{name} is {where}, and the run does not enter it"
        for where, names in (("on the way", way.listed), ("among the others", sorted(way.others)))
        for name in names
        if name not in entered
    ]
    found += [
        f"the run enters {name}, which the page does not name"
        for name in entered
        if name not in {*way.listed, *way.others} and name.partition(".")[0] not in HELPERS
    ]
    known = [name for name in way.listed if name in entered]
    found += [
        f"the run enters {after} before {before}"
        for before, after in itertools.pairwise(known)
        if entered.index(after) < entered.index(before)
    ]
    if len(way.listed) > MOST:
        found.append(f"the way has {len(way.listed)} modules, more than {MOST}")
    return found
