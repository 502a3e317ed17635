"""How a feed is written: ``output0:input1``, ``argmax(output0):input0``, ``step:input1``.

====================================================  ==================================================
form                                                  the input's value in the next step
====================================================  ==================================================
``outputK``                                           the output's bytes
``argmax(outputK)``                                   the index of the largest number in the last rows
``sample(outputK, temperature=T, top_k=K, seed=N)``   an index drawn by softmax(numbers / T)
``step``                                              the value before, plus the number of its elements
====================================================  ==================================================

A row is what lies along the last axis. An input of n elements takes the indices of the last n rows, or with
``argmax(outputK[R])`` of the rows from number R on. ``stop=A/B`` ends the sequence after a step that chose A or B.
An output of whole numbers is drawn from with ``scale=S``, by which its numbers are multiplied first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import protocol
from ethosu_sdk.errors import UsageError

COPY, ARGMAX, SAMPLE, STEP = "copy", "argmax", "sample", "step"
LONGEST_TEMPERATURE = 1e6
_FEED = re.compile(r"\s*(?P<source>[^:]*?)\s*:\s*input(?P<input>\d{1,6})\s*")
_OUTPUT = re.compile(r"output(?P<output>\d{1,6})")
_CHOICE = re.compile(
    r"(?P<form>argmax|sample)\(\s*output(?P<output>\d{1,6})(\[(?P<row>\d{1,9})\])?\s*(,(?P<settings>[^()]*))?\)"
)
_SETTING = re.compile(r"\s*(?P<name>[a-z_]+)\s*=\s*(?P<value>[-+.\w/]+)\s*")
_HINT = (
    "a feed is output0:input1, argmax(output0):input0, sample(output0, temperature=0.8, top_k=40, seed=1):input0 or "
    "step:input1"
)


@dataclass(frozen=True)
class Feed:
    """The value of input number `input` comes from output number `output` of the step before.

    `form` is one of COPY, ARGMAX, SAMPLE and STEP; a step has no output. `row` is the first row that indices are
    chosen from, None the last ones. `temperature`, `top_k` (0: all), `seed` and `scale` (None: 1, of an output of
    floats) are for samples. A step that chose one of `stops` is the last.
    """

    form: str
    input: int
    output: int = 0
    row: int | None = None
    temperature: float = 1.0
    top_k: int = 0
    seed: int = 0
    scale: float | None = None
    stops: tuple[int, ...] = ()

    @property
    def is_copy(self) -> bool:
        """Whether the value is the output as it is."""
        return self.form == COPY

    @property
    def is_choice(self) -> bool:
        """Whether the value is an index that is chosen."""
        return self.form in (ARGMAX, SAMPLE)

    def __str__(self) -> str:
        """The feed as :func:`parse` reads it, with every setting that is not the default's."""
        return f"{self._source()}:input{self.input}"

    def _source(self) -> str:
        if self.form == STEP:
            return STEP
        if self.form == COPY:
            return f"output{self.output}"
        place = f"output{self.output}" + ("" if self.row is None else f"[{self.row}]")
        settings: dict[str, object] = {}
        if self.form == SAMPLE:
            settings = {"temperature": f"{self.temperature!r}"}
            settings |= {"top_k": self.top_k} if self.top_k else {}
            settings |= {"seed": self.seed}
            settings |= {} if self.scale is None else {"scale": f"{self.scale!r}"}
        settings |= {"stop": "/".join(map(str, self.stops))} if self.stops else {}
        return f"{self.form}({', '.join([place, *(f'{name}={value}' for name, value in settings.items())])})"


def parse(texts: Sequence[str]) -> tuple[Feed, ...]:
    """The feeds that `texts` describe, in their order. UsageError for one that is malformed, or a second of an
    input."""
    feeds = tuple(_parse(text) for text in texts)
    if len(feeds) > protocol.SEQUENCE_MAX_FEEDS:
        raise UsageError(f"{len(feeds)} feeds, but a sequence has {protocol.SEQUENCE_MAX_FEEDS} at most")
    for number, feed in enumerate(feeds):
        if any(other.input == feed.input for other in feeds[:number]):
            raise UsageError(f"input{feed.input} has two feeds", "give each input one")
    return feeds


def _parse(text: str) -> Feed:
    whole = _FEED.fullmatch(text)
    if whole is None:
        raise UsageError(f"'{text}' is not a feed", _HINT)
    source, target = whole["source"], int(whole["input"])
    if source == STEP:
        return Feed(STEP, target)
    if output := _OUTPUT.fullmatch(source):
        return Feed(COPY, target, int(output["output"]))
    choice = _CHOICE.fullmatch(source)
    if choice is None:
        raise UsageError(f"'{source}' is not something that can be fed", _HINT)
    row = None if choice["row"] is None else int(choice["row"])
    settings = _settings(choice["form"], choice["settings"])
    return Feed(choice["form"], target, int(choice["output"]), row, **settings)


def _settings(form: str, text: str | None) -> dict[str, Any]:
    known = {"stop": _SETTINGS["stop"]} if form == ARGMAX else _SETTINGS
    found: dict[str, Any] = {}
    for part in (text or "").split(",") if text is not None else ():
        match = _SETTING.fullmatch(part)
        name = "" if match is None else match["name"]
        if match is None or name not in known:
            raise UsageError(
                f"'{part.strip()}' is not a setting of {form}", f"the settings are {', '.join(known)}"
            )
        field, read = known[name]
        if field in found:
            raise UsageError(f"{form} has the setting '{name}' twice")
        found[field] = read(name, match["value"])
    return found


def _whole(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not text.isdecimal() or not text.isascii() or len(text) > 20 or not least <= int(text) <= most:
            raise UsageError(f"{name}={text}: a whole number between {least} and {most} is needed")
        return int(text)

    return read


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 / LONGEST_TEMPERATURE <= value <= LONGEST_TEMPERATURE:
        raise UsageError(
            f"{name}={text}: a number between {1 / LONGEST_TEMPERATURE:g} and {LONGEST_TEMPERATURE:g} is needed",
            "argmax(…) always takes the largest",
        )
    return value


def _stops(name: str, text: str) -> tuple[int, ...]:
    read = _whole(0, 0x7FFF_FFFF)
    stops = tuple(read(name, part) for part in text.split("/"))
    if len(stops) > protocol.FEED_MAX_STOPS:
        raise UsageError(f"{name}={text}: {protocol.FEED_MAX_STOPS} indices at most can end a sequence")
    return stops


# Setting → (field of Feed, what reads its text).
_SETTINGS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "temperature": ("temperature", _positive),
    "top_k": ("top_k", _whole(1, protocol.FEED_MAX_TOP_K)),
    "seed": ("seed", _whole(0, 0xFFFF_FFFF_FFFF_FFFF)),
    "scale": ("scale", _positive),
    "stop": ("stops", _stops),
}
