"""The summary of a profile: totals, traffic, and the operations that take longest."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.summary.markdown import table, target_text, title
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.tables import profile_tables

_MOST_ROWS = 10


def lines(record: Profile) -> list[str]:
    """The lines of the summary."""
    rows, _ = profile_tables.slowest(record, _MOST_ROWS)
    return [
        title(record.status, "profile", record.model.file),
        *table(("", ""), [("target", target_text(record.target)), *profile_tables.total_rows(record)]),
        *table(profile_tables.HEADINGS, (tuple(profile_tables.cells(row)) for row in rows)),
        *table(("memory", "AXI port", "read", "written", "unit"), _memories(record)),
    ]


def _memories(record: Profile) -> Iterator[tuple[str, str, str, str, str]]:
    for row in record.memories:
        read, written = f"{row.read_bytes:,}", f"{row.write_bytes:,}"
        yield row.memory, str(row.port), read, written, "bytes per inference"
