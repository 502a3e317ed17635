"""A plot: what it is called, what it says in words, and its specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair

from ethosu_sdk import plain_text

Rows = Sequence[Mapping[str, Any]]
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Plot:
    """`text` says what is drawn. Without a `spec` it says why nothing is."""

    id: str
    title: str
    text: str
    spec: dict[str, Any] = field(default_factory=dict)


def drawn(name: str, title: str, text: str, chart: Any, **datasets: Rows) -> Plot:
    """The plot of an Altair `chart` that names its `datasets`: those are not checked against Altair's schema, which
    takes seconds for thousands of rows."""
    spec: dict[str, Any] = chart.to_dict()
    spec["datasets"] = {key: [dict(row) for row in rows] for key, rows in datasets.items()}
    return Plot(name, title, text, spec)


def named(dataset: str) -> Any:
    """The data of a chart, by the name in :func:`drawn`."""
    return altair.NamedData(name=dataset)


def short(value: object) -> str:
    """A name of others as a plot shows it: on one line, and not without end."""
    return plain_text.cut(value, _LONGEST_NAME)
