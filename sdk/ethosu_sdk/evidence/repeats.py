"""Compares repeats of the same inference with the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Changed:
    """One repeat whose result is not that of the first repeat of the same inputs.

    `index` is the output's, or the instruction's whose counters changed.
    """

    set: int
    repeat: int
    index: int


@dataclass(frozen=True)
class Plan:
    """How a run repeats: `sets` of inputs, each `repeats` times; repeat k counts event group ``k % event_groups``.

    With `in_pieces`, the last repeat runs command streams in pieces. `state` says what a repeat begins with in a
    program that has one: ``reset`` (what the program brings) or ``kept`` (what the repeat before left); else it is
    empty.
    """

    sets: int
    repeats: int = 1
    event_groups: int = 1
    in_pieces: bool = False
    state: str = ""

    @property
    def whole(self) -> int:
        """The repeats that run whole command streams."""
        return self.repeats - self.in_pieces

    def runs_pieces(self, inference: int) -> bool:
        """Whether the inference runs command streams in pieces."""
        return inference % self.repeats >= self.whole

    @property
    def inferences(self) -> int:
        """All inferences of the run."""
        return self.sets * self.repeats

    def first(self, inference: int) -> int:
        """The first repeat of the same inputs."""
        return inference - inference % self.repeats

    def first_of_group(self, inference: int) -> int:
        """The first repeat of the same inputs that counts the same events."""
        return self.first(inference) + inference % self.repeats % self.event_groups

    def changed(self, inference: int, index: int) -> Changed:
        """The same place in terms of sets and repeats."""
        return Changed(inference // self.repeats, inference % self.repeats, index)


def changes(
    plan: Plan,
    results: Sequence[Mapping[int, object]],
    *,
    same_group: bool = False,
    whole: bool = False,
) -> tuple[Changed, ...]:
    """Results of inferences that differ from those of the first repeat; `results` are by inference, then by index.

    With `same_group` the first repeat that counts the same events is meant. A result that only one of the two has is
    a change. `whole` leaves out the repeats that run pieces.
    """
    found = []
    for inference, result in enumerate(results):
        if whole and plan.runs_pieces(inference):
            continue
        first = results[plan.first_of_group(inference) if same_group else plan.first(inference)]
        found += [
            plan.changed(inference, index)
            for index in sorted(result.keys() | first.keys())
            if result.get(index) != first.get(index)
        ]
    return tuple(found)
