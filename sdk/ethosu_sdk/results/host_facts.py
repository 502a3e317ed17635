"""The `host` part of a record: where it was made. It never counts when two records are compared."""

from __future__ import annotations

import platform

from ethosu_sdk.records import Record


def host() -> Record:
    """Operating system, processor architecture and Python version; no names, no paths."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
