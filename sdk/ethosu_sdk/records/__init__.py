"""Records: what commands write as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

Record = dict[str, Any]

# What may differ between two runs of the same thing; everything else in a record must repeat bit for bit.
VOLATILE_KEYS = ("created", "wall_time_s", "check_time_s", "host", "session")


def timestamp() -> str:
    """Now, in UTC, as RFC 3339 with seconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def comparable(record: Mapping[str, Any]) -> Record:
    """The part of a record that must repeat bit for bit between two runs of the same thing."""
    return {key: value for key, value in record.items() if key not in VOLATILE_KEYS}
