"""Tables as the text of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence


def table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A line with the names of `columns`, then one for each row, empty where a row has no such value."""
    return lines(columns, ([row.get(name, "") for name in columns] for row in rows))


def lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same for rows that are in the order of `columns`; lines end as on Unix."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
