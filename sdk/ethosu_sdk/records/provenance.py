"""What a record says of itself: when, by whom, where and from what it was made, and for which target."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from msgspec import convert

from ethosu_sdk import __version__
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.tools import git_revision
from ethosu_sdk.records import common
from ethosu_sdk.records.common import Host, Provenance, Tool


def timestamp() -> str:
    """Now, in UTC, as RFC 3339 with seconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def comparable(record: Mapping[str, Any]) -> Record:
    """The part of a record that must repeat bit for bit between two runs of the same thing."""
    volatile = ("created", "wall_time_s", "check_time_s", "host", "session")
    return {key: value for key, value in record.items() if key not in volatile}


def tool() -> Tool:
    return Tool(name="ethosu-sdk", version=__version__, git=git_revision())


def file_entry(role: str, path: Path, sha256: str | None = None) -> Record:
    """One row of `provenance.inputs`: a file that shaped the result."""
    return {
        "role": role,
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": sha256 or filesystem.sha256_file(path),
    }


def tool_entry(name: str, version: str) -> Record:
    """One row of `provenance.tools`: a program or package that shaped the result."""
    return {"name": name, "version": version}


class Origin(TypedDict):
    """The members of a record's class that say when it was made, by whom, and from what."""

    created: str
    tool: Tool
    provenance: Provenance


def origin(inputs: Sequence[Record], tools: Sequence[Record]) -> Origin:
    """Now, this SDK, and the rows of what shaped the result."""
    return {
        "created": timestamp(),
        "tool": tool(),
        "provenance": convert({"inputs": inputs, "tools": tools}, Provenance),
    }


def opening(schema: str, status: str) -> Record:
    return {"schema": schema, "status": status, "created": timestamp(), "tool": tool().to_json()}


def header(schema: str, status: str, inputs: Sequence[Record], tools: Sequence[Record]) -> Record:
    """The members that open a record which says what shaped it."""
    return {**opening(schema, status), "provenance": {"inputs": list(inputs), "tools": list(tools)}}


def this_host() -> Host:
    """Operating system, processor architecture and Python version; no names, no paths."""
    return Host(
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        python=platform.python_version(),
    )


def host_part() -> Record:
    """The same as JSON."""
    return this_host().to_json()


def lacking_npu(path: str) -> common.Unavailable:
    return common.Unavailable(path=path, reason="the program delegates nothing to an NPU")


def recorded_target(target: Target | None) -> common.Target | None:
    return None if target is None else convert(target, common.Target, from_attributes=True)
