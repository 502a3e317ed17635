"""The summary of a comparison: what differs that must not, and the figures and operators that changed."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.compare import compare_tables
from ethosu_sdk.readers.summary.markdown import escaped, table, title
from ethosu_sdk.records.compare import Comparison, Comparisons

_MOST_OPERATORS = 10


def lines(record: Comparisons) -> list[str]:
    """The lines of the summary."""
    names = " → ".join(row.name for row in record.subjects)
    return [
        title(record.status, "compare", names),
        *(line for row in record.comparisons for line in _part(record, row)),
        *table(("failed", "reason"), ((row.name, row.reason) for row in record.failed)),
    ]


def _part(record: Comparisons, comparison: Comparison) -> Iterator[str]:
    yield ""
    yield escaped(f"{compare_tables.title(record, comparison)}: {compare_tables.summary(comparison)}")
    yield from table(compare_tables.DIMENSION_HEADINGS, compare_tables.dimension_rows(comparison))
    yield from table(compare_tables.METRIC_HEADINGS, compare_tables.metric_rows(comparison))
    rows = compare_tables.operator_rows(comparison, _MOST_OPERATORS)
    yield from table(compare_tables.OPERATOR_HEADINGS, rows)
