"""How many steps a sequence has, and whether its feeds fit the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.feeds import COPY, STEP, Feed, stepping
from ethosu_sdk.npz import MOST_SAMPLES

Array = npt.NDArray[Any]


def check(feeds: Sequence[Feed], plan: pte.ExecutionPlan) -> None:
    """UsageError for the first of `feeds` that does not fit the program's method."""
    inputs, outputs = plan.input_tensors(), plan.output_tensors()
    described = [[(row.dtype, row.sizes) for row in rows] for rows in (inputs, outputs)]
    for feed in feeds:
        stepping.check(feed, *described)
        if feed.form == STEP:
            continue
        order = outputs[feed.output].dim_order
        wanted = inputs[feed.input].dim_order if feed.form == COPY else tuple(range(len(order)))
        if order != wanted:
            raise UsageError(
                f"{feed}: the program keeps output{feed.output} with its axes in the order {list(order)}, where "
                f"{list(wanted)} is needed",
                "return a contiguous tensor from the model",
            )


def count(rows: Sequence[Sequence[Array]], feeds: Sequence[Feed], steps: int | None) -> int:
    """The number of steps, for inputs with so many `rows`. InputError for numbers that contradict each other."""
    fed = {feed.input for feed in feeds}
    free = {number: len(row) for number, row in enumerate(rows) if number not in fed and len(row) > 1}
    found = steps if steps is not None else max(free.values(), default=0)
    if not found:
        raise UsageError(
            "how many steps to run is not given: no input that is not fed has a leading axis",
            "give --steps N, or an input for each step",
        )
    if found > MOST_SAMPLES:
        raise UsageError(f"{found:,} steps, but the limit of a run is {MOST_SAMPLES:,}")
    for number, row in enumerate(rows):
        if number in free and len(row) != found:
            raise InputError(
                f"input{number} is given for {len(row)} steps, but the sequence has {found}",
                "give it for each step, once for all of them, or feed it",
            )
        if len(row) > found:
            raise InputError(f"input{number} is given for {len(row)} steps, but the sequence has {found}")
    return found
