"""The `host` part of a record: where it was made. It never counts when two records are compared."""

from __future__ import annotations

import platform

from ethosu_sdk.records import Record
from ethosu_sdk.records.common import Host


def this_host() -> Host:
    """Operating system, processor architecture and Python version; no names, no paths."""
    return Host(
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        python=platform.python_version(),
    )


def host() -> Record:
    """The same as JSON."""
    return this_host().to_json()
