"""Tables as the text of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence


def table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A line with the names of `columns`, then one for each row; lines end as on Unix."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
