"""How large a recurrent network becomes: ExecuTorch unrolls GRU, LSTM and RNN, each step a set of operators.

An Ethos-U has no loop, so a sequence of T steps is T copies in the command stream; the time of every pass of the
compiler grows with their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.errors import InputError, UsageError

LIMIT_VARIABLE = "ETHOSU_SDK_MAX_UNROLLED_OPERATORS"
_LIMIT = 4000
WORTH_A_WARNING = 800
_HINT = (
    "process fewer steps in one inference and pass the state as an input and an output of the model, or use "
    "convolutions over time (a TCN) instead; if time does not matter, {} raises the limit"
)


@dataclass(frozen=True)
class _Layer:
    """One kind of recurrent operator: what ExecuTorch 1.5.1's passes make of a step, and where its arguments are."""

    operators_per_step: int
    layers: int = 4  # positions among the operator's arguments
    bidirectional: int = 7
    batch_first: int = 8


# By the name of ATen's operator. A step of a GRU: 2 linear, 7 slices and selects, 10 element-wise, 1 unsqueeze.
_SEQUENCES = {
    "aten::gru": _Layer(20),
    "aten::lstm": _Layer(18),
    "aten::rnn_tanh": _Layer(6),
    "aten::rnn_relu": _Layer(6),
}
# The cells that a loop of the user's own calls step by step.
_CELLS = {"aten::gru_cell": 18, "aten::lstm_cell": 16, "aten::rnn_tanh_cell": 4, "aten::rnn_relu_cell": 4}


@dataclass(frozen=True)
class Unrolled:
    """The recurrent operators of a program: how many steps there are in all, about how many operators they become,
    and the node of the longest."""

    steps: int
    operators: int
    longest: Mapping[str, Any]


def check(program: Any, finder: SourceFinder) -> str | None:
    """A warning for a program whose recurrent layers make it large, or None. InputError beyond the limit."""
    found = estimate(program)
    if found is None or found.operators <= WORTH_A_WARNING:
        return None
    place = finder.place(found.longest)
    what = (
        f"recurrent layers{f' (at {place})' if place else ''} unroll: {found.steps:,} steps become about "
        f"{found.operators:,} operators"
    )
    limit = _limit()
    if found.operators > limit:
        raise InputError(f"the model's {what}, but the limit is {limit:,}", _HINT.format(LIMIT_VARIABLE))
    return f"The {what}, which takes long to compile. Fewer steps in one inference, with the state passed on, do not."


def estimate(program: Any) -> Unrolled | None:
    """What the recurrent operators of an exported program become; None when it has none."""
    rows = list(_recurrent(program))
    if not rows:
        return None
    longest = max(rows, key=lambda row: row[1])
    return Unrolled(sum(row[0] for row in rows), sum(row[1] for row in rows), longest[2])


def _recurrent(program: Any) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """(steps, operators, meta) of each recurrent node."""
    for node in program.graph.nodes:
        schema: Any = getattr(node.target, "_schema", None)
        name = getattr(schema, "name", "")
        if name in _CELLS:
            yield 1, _CELLS[name], node.meta
        elif name in _SEQUENCES and schema.overload_name == "input":
            row, args = _SEQUENCES[name], node.args
            shape = args[0].meta["val"].shape
            runs = int(args[row.layers]) * (2 if args[row.bidirectional] else 1)
            steps = int(shape[1 if args[row.batch_first] else 0]) * runs
            yield steps, steps * row.operators_per_step, node.meta


def _limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return _LIMIT
    if not text.isdecimal():
        raise UsageError(
            f"{LIMIT_VARIABLE} is '{text}', not a number", "give it a number of operators, or unset it"
        )
    return int(text)
