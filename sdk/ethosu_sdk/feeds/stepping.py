"""The inputs of each step of a sequence: given, held or fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.errors import SimulationError, UsageError
from ethosu_sdk.feeds import choosing
from ethosu_sdk.feeds.syntax import ARGMAX, COPY, STEP, Feed
from ethosu_sdk.protocol import FEED_MAX_ROWS

Array = npt.NDArray[Any]
Described = tuple[str, tuple[int, ...]]  # dtype, shape
_KEPT = ("uint8", "int8", "int16", "int32", "int64", "float32")  # that hold an index or the number of a step


@dataclass(frozen=True)
class Steps:
    """The inputs of a sequence of `count` steps, as they are given.

    `given` has the rows of each input: one for each step from the first on. An input with a feed takes the fed value
    in the steps behind its rows, another keeps the value of its last row. `first_step` is the number of the first
    step in a longer sequence.
    """

    count: int
    given: tuple[tuple[Array, ...], ...]  # [input][row]
    feeds: tuple[Feed, ...] = ()
    first_step: int = 0

    def rows(self, step: int) -> tuple[Array, ...]:
        """The inputs of `step`; of one that is fed or held, the last that is given."""
        return tuple(rows[min(step, len(rows) - 1)] for rows in self.given)

    def first_fed(self, feed: Feed) -> int:
        """The first step that takes the value of `feed`."""
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
        """The inputs of the step that is next."""
        return tuple(
            self._next[number]
            if number in self._next and self.step >= len(self._steps.given[number])
            else row
            for number, row in enumerate(self._steps.rows(self.step))
        )

    def take(
        self, outputs: Mapping[int, Array | None], told: Mapping[int, tuple[int, ...]] | None = None
    ) -> dict[int, tuple[int, ...]]:
        """The indices that were chosen from the `outputs` of the step, by input; the next step can begin then.

        Where an output is not known (None), what was `told` is taken for what was chosen, and a copy of it keeps the
        value before. SimulationError for values from which nothing can be chosen, as the firmware fails then.
        """
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


def taken(feed: Feed, output: Array, template: Array, step: int) -> tuple[Array, tuple[int, ...] | None]:
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
        return tuple(choosing.greatest(row) for row in chosen)
    multiplier = choosing.factor(feed.temperature, feed.scale or 1.0)
    return tuple(
        choosing.drawn(row, multiplier, feed.top_k, choosing.random_bits(feed.seed, step * count + number))
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


def check(feed: Feed, inputs: Sequence[Described], outputs: Sequence[Described]) -> None:
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
            f"{feed}: the output is {_words(outputs[feed.output])}, the input {_words((dtype, shape))}",
            "an output is fed as it is: type and shape must be the same",
        )
    if feed.is_choice:
        _check_choice(feed, int(np.prod(shape, dtype=np.int64)), outputs[feed.output])


def _check_choice(feed: Feed, count: int, output: Described) -> None:
    dtype, shape = output
    if dtype not in choosing.DTYPES or not shape or 0 in shape:
        raise UsageError(
            f"{feed}: the output is {_words(output)}",
            f"an index is chosen along the last axis of {', '.join(choosing.DTYPES)}",
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


def _words(described: Described) -> str:
    return f"{described[0]}{list(described[1])}"
