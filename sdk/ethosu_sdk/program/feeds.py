"""Feeds: which outputs of one step of a sequence become inputs of the next, and the inputs of each step.

====================================================  ==================================================
a feed is written                                     the input's value in the next step
====================================================  ==================================================
``outputK:inputN``                                    the output's bytes
``argmax(outputK):inputN``                            the index of the largest number in the last rows
``sample(outputK, temperature=T, top_k=K, seed=N)…``  an index drawn by softmax(numbers / T)
``step:inputN``                                       the value before, plus the number of its elements
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

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base.errors import SimulationError, UsageError
from ethosu_sdk.program import protocol
from ethosu_sdk.program.protocol import FEED_MAX_ROWS

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
    """The value of input number `input` comes from output number `output` of the step before. `form` is one of COPY,
    ARGMAX, SAMPLE and STEP; a step has no output. `row` is the first row that indices are chosen from, None the last
    ones. `temperature`, `top_k` (0: all), `seed` and `scale` (None: 1, of an output of floats) are for samples. A
    step that chose one of `stops` is the last."""

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
        return self.form == COPY

    def __str__(self) -> str:
        """The feed as :func:`parse_feeds` reads it, with every setting that is not the default's."""
        if self.form == STEP:
            return f"{STEP}:input{self.input}"
        if self.form == COPY:
            return f"output{self.output}:input{self.input}"
        parts = [f"output{self.output}" + ("" if self.row is None else f"[{self.row}]")]
        if self.form == SAMPLE:
            parts.append(f"temperature={self.temperature!r}")
            parts += [f"top_k={self.top_k}"] if self.top_k else []
            parts.append(f"seed={self.seed}")
            parts += [] if self.scale is None else [f"scale={self.scale!r}"]
        parts += [f"stop={'/'.join(map(str, self.stops))}"] if self.stops else []
        return f"{self.form}({', '.join(parts)}):input{self.input}"


def parse_feeds(texts: Sequence[str]) -> tuple[Feed, ...]:
    """The feeds that `texts` describe, in their order. UsageError for one that is malformed, or a second of an
    input."""
    feeds = tuple(_parse_feed(text) for text in texts)
    if len(feeds) > protocol.SEQUENCE_MAX_FEEDS:
        raise UsageError(f"{len(feeds)} feeds, but a sequence has {protocol.SEQUENCE_MAX_FEEDS} at most")
    for number, feed in enumerate(feeds):
        if any(other.input == feed.input for other in feeds[:number]):
            raise UsageError(f"input{feed.input} has two feeds", "give each input one")
    return feeds


def _parse_feed(text: str) -> Feed:
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


# Choosing an index by numbers: the largest, or one drawn by weights, with the same bits on every machine. The
# firmware's half is firmware/app/choosing.cpp. Numbers are float32; weights are whole numbers, so that neither an
# exponential function nor the order of a sum matters.

Array = npt.NDArray[Any]

DTYPES = ("uint8", "int8", "int16", "float32")  # of numbers that are chosen from
_MASK = (1 << 64) - 1
_FRACTION_BITS = 16
_SMALLEST = np.float32(-32.0 * 65536.0)  # a weight below 2^-32 is none
# 2^(32 - 2^(bit - 16)), rounded down, for each bit of a fraction.
POWERS = (
    *(4294921870, 4294876444, 4294785595, 4294603902, 4294240539, 4293513906, 4292061009, 4289156690),
    *(4283353945, 4271771996, 4248701964, 4202935003, 4112874773, 3938502375, 3611622602, 3037000499),
)


def greatest_index(numbers: Array) -> int:
    """The index of the largest of `numbers` [n], of equal ones the lowest. SimulationError where one is NaN."""
    row = numbers.astype(np.float32)
    if np.isnan(row).any():
        raise SimulationError("a value to choose from is no number")
    return int(row.argmax())


def temperature_factor(temperature: float, scale: float) -> np.float32:
    """What a number's distance from the largest is multiplied with: 65536 steps halve the weight."""
    return np.float32(min(65536.0 * math.log2(math.e) * scale / temperature, float(np.finfo(np.float32).max)))


def drawn_index(numbers: Array, multiplier: np.float32, top_k: int, bits: int) -> int:
    """The index of `numbers` [n] that the 64 random `bits` choose. Number i has the weight 2^((x[i] - max) *
    multiplier / 65536); only the `top_k` largest (0: all; of equal ones those with the lowest indices) have one.
    SimulationError where one is NaN, or the largest is infinite."""
    row = numbers.astype(np.float32)
    largest = row[greatest_index(row)]
    if not np.isfinite(largest):
        raise SimulationError("the largest value to choose from is infinite")
    candidates = np.arange(row.size)
    if 0 < top_k < row.size:
        candidates = np.sort(np.argsort(-row, kind="stable")[:top_k])
    with np.errstate(over="ignore"):
        exponents = (row[candidates] - largest) * multiplier
    weighty = exponents > _SMALLEST
    candidates, steps = candidates[weighty], (-exponents[weighty]).astype(np.uint64)
    weights = np.full(steps.shape, 0xFFFF_FFFF, np.uint64)
    for bit, power in enumerate(POWERS):
        halved = (weights * np.uint64(power)) >> np.uint64(32)
        weights = np.where((steps >> np.uint64(bit)) & np.uint64(1), halved, weights)
    weights >>= steps >> np.uint64(_FRACTION_BITS)
    sums = np.cumsum(weights, dtype=np.uint64)
    return int(candidates[np.searchsorted(sums, np.uint64(bits % int(sums[-1])), side="right")])


def random_bits(seed: int, draw: int) -> int:
    """64 random bits: number `draw` of SplitMix64's sequence for `seed` (Steele, Lea and Flood, OOPSLA 2014)."""
    bits = (seed + (draw + 1) * 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
    return bits ^ bits >> 31


Described = tuple[str, tuple[int, ...]]  # dtype, shape
_KEPT = ("uint8", "int8", "int16", "int32", "int64", "float32")  # that hold an index or the number of a step


@dataclass(frozen=True)
class Steps:
    """The inputs of a sequence of `count` steps, as they are given. `given` has the rows of each input: one for each
    step from the first on. An input with a feed takes the fed value in the steps behind its rows, another keeps the
    value of its last row. `first_step` is the number of the first step in a longer sequence."""

    count: int
    given: tuple[tuple[Array, ...], ...]  # [input][row]
    feeds: tuple[Feed, ...] = ()
    first_step: int = 0

    def rows(self, step: int) -> tuple[Array, ...]:
        """The inputs of `step`; of one that is fed or held, the last that is given."""
        return tuple(rows[min(step, len(rows) - 1)] for rows in self.given)

    def first_fed(self, feed: Feed) -> int:
        return len(self.given[feed.input])


class Stepper:
    """Goes through a sequence: :meth:`inputs` of a step, then :meth:`take` its outputs."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._next: dict[int, Array] = {}
        self.step = 0
        self.stopped = False

    @property
    def is_over(self) -> bool:
        """Whether there is no step any more: all are done, or a feed has chosen to stop."""
        return self.stopped or self.step == self._steps.count

    def inputs(self) -> tuple[Array, ...]:
        return tuple(
            self._next[number]
            if number in self._next and self.step >= len(self._steps.given[number])
            else row
            for number, row in enumerate(self._steps.rows(self.step))
        )

    def take(
        self, outputs: Mapping[int, Array | None], told: Mapping[int, tuple[int, ...]] | None = None
    ) -> dict[int, tuple[int, ...]]:
        """The indices that were chosen from the `outputs` of the step, by input; the next step can begin then. Where
        an output is not known (None), what was `told` is taken for what was chosen, and a copy of it keeps the value
        before. SimulationError for values from which nothing can be chosen, as the firmware fails then."""
        choices: dict[int, tuple[int, ...]] = {}
        for feed in self._steps.feeds:
            if self.step + 1 < self._steps.first_fed(feed):
                continue
            template = self._steps.given[feed.input][-1]
            if feed.form == COPY:
                copied = outputs[feed.output]
                self._next[feed.input] = template if copied is None else copied
            elif feed.form == STEP:
                before = self._next.get(feed.input, template)
                self._next[feed.input] = _kept(before.astype(np.int64) + before.size, before, feed)
            else:
                choices[feed.input] = chosen = self._choose(
                    feed, outputs[feed.output], template.size, told or {}
                )
                self._next[feed.input] = _kept(
                    np.array(chosen, np.int64).reshape(template.shape), template, feed
                )
                self.stopped = self.stopped or not {*chosen}.isdisjoint(feed.stops)
        self.step += 1
        return choices

    def _choose(
        self, feed: Feed, output: Array | None, count: int, told: Mapping[int, tuple[int, ...]]
    ) -> tuple[int, ...]:
        if output is not None:
            return choose(feed, output, count, self._steps.first_step + self.step)
        chosen = told.get(feed.input, ())
        if len(chosen) != count:
            raise SimulationError(
                f"{len(chosen)} indices were chosen for input{feed.input}, it takes {count}"
            )
        return chosen


def taken_value(
    feed: Feed, output: Array, template: Array, step: int
) -> tuple[Array, tuple[int, ...] | None]:
    """The value of an input like `template` that a call takes from an `output` of step number `step`, the last of the
    call before; and the indices that were chosen for it, None for a copy. SimulationError as :meth:`Stepper.take`."""
    if feed.form == COPY:
        return output, None
    chosen = choose(feed, output, template.size, step)
    return _kept(np.array(chosen, np.int64).reshape(template.shape), template, feed), chosen


def choose(feed: Feed, output: Array, count: int, step: int) -> tuple[int, ...]:
    """The `count` indices that `feed` chooses from `output` [..., rows, n] after step number `step`."""
    rows = output.reshape(-1, output.shape[-1])
    first = len(rows) - count if feed.row is None else feed.row
    chosen = rows[first : first + count]
    if feed.form == ARGMAX:
        return tuple(greatest_index(row) for row in chosen)
    multiplier = temperature_factor(feed.temperature, feed.scale or 1.0)
    return tuple(
        drawn_index(row, multiplier, feed.top_k, random_bits(feed.seed, step * count + number))
        for number, row in enumerate(chosen)
    )


def _kept(values: Array, template: Array, feed: Feed) -> Array:
    """Whole numbers as an array of the input's type. SimulationError for one that it does not hold."""
    kept = values.astype(template.dtype)
    if (kept.astype(np.int64) != values).any():
        raise SimulationError(
            f"input{feed.input} is {template.dtype.name}, which does not hold {values.max()}"
        )
    return kept


def check_feed(feed: Feed, inputs: Sequence[Described], outputs: Sequence[Described]) -> None:
    """UsageError for a feed that does not fit the program's `inputs` and `outputs`."""
    if feed.input >= len(inputs):
        raise UsageError(f"{feed}: the program has no input{feed.input}, it has {len(inputs)}")
    dtype, shape = inputs[feed.input]
    if feed.form != COPY and dtype not in _KEPT:
        raise UsageError(f"{feed}: input{feed.input} is {dtype}, which does not hold a whole number")
    if feed.form == STEP:
        return
    if feed.output >= len(outputs):
        raise UsageError(f"{feed}: the program has no output{feed.output}, it has {len(outputs)}")
    if feed.form == COPY and outputs[feed.output] != (dtype, shape):
        raise UsageError(
            f"{feed}: the output is {_described_words(outputs[feed.output])}, "
            f"the input {_described_words((dtype, shape))}",
            "an output is fed as it is: type and shape must be the same",
        )
    if feed.form in (ARGMAX, SAMPLE):
        _check_choice(feed, int(np.prod(shape, dtype=np.int64)), outputs[feed.output])


def _check_choice(feed: Feed, count: int, output: Described) -> None:
    dtype, shape = output
    if dtype not in DTYPES or not shape or 0 in shape:
        raise UsageError(
            f"{feed}: the output is {_described_words(output)}",
            f"an index is chosen along the last axis of {', '.join(DTYPES)}",
        )
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    first = 0 if feed.row is None else feed.row
    if not 0 < count <= min(FEED_MAX_ROWS, rows - first):
        raise UsageError(
            f"{feed}: the input takes {count} indices, and the output has {rows} rows"
            + (f", {max(0, rows - first)} from number {first} on" if first else ""),
            f"each index is chosen from a row along the output's last axis, {FEED_MAX_ROWS} at most",
        )
    if feed.form != ARGMAX and feed.scale is None and dtype != "float32":
        raise UsageError(
            f"{feed}: the output is {dtype}, and nothing says what its numbers stand for",
            "give the output's quantisation scale with scale=S, or compile with --io float",
        )


def _described_words(described: Described) -> str:
    return f"{described[0]}{list(described[1])}"
