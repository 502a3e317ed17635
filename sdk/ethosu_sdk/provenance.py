"""Who made a record, and from what: the `tool` and `provenance` parts that every record carries."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from msgspec import convert

from ethosu_sdk import __version__, proc, records, resources
from ethosu_sdk.errors import SdkError, ToolError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record
from ethosu_sdk.records.common import Provenance, Tool

_GIT_TIMEOUT_S = 10.0


@functools.cache
def git_revision() -> str | None:
    """The SDK's commit, with ``-dirty`` when files differed from it; None where nothing names it.

    A checkout asks git; a wheel has the commit that it was made of (hatch_build.py).
    """
    root = resources.repository()
    if root is None:
        noted = resources.file("commit")
        return noted.read_text(encoding="ascii").strip() if noted is not None else None
    try:
        argv = [
            proc.find_tool("git", hint=""),
            "-C",
            str(root),
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
        ]
        return proc.run(argv, timeout_s=_GIT_TIMEOUT_S, error=ToolError).output.strip() or None
    except SdkError:
        return None


def tool() -> Tool:
    """The `tool` object of a record."""
    return Tool(name="ethosu-sdk", version=__version__, git=git_revision())


def package_version(name: str) -> str | None:
    """The installed version of the Python distribution `name`, read from its metadata; None when absent."""
    import importlib.metadata  # slow to import, and the FVP launchers, which must start fast, need no versions

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def file_entry(role: str, path: Path, sha256: str | None = None) -> Record:
    """One row of `provenance.inputs`: a file that shaped the result."""
    return {
        "role": role,
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": sha256 or hashing.sha256_file(path),
    }


def tool_entry(name: str, version: str, program: Path | None = None) -> Record:
    """One row of `provenance.tools`: a program or package that shaped the result."""
    return {
        "name": name,
        "version": version,
        **({"sha256": hashing.sha256_file(program)} if program is not None else {}),
    }


class Origin(TypedDict):
    """The members of a record's class that say when it was made, by whom, and from what."""

    created: str
    tool: Tool
    provenance: Provenance


def origin(inputs: Sequence[Record], tools: Sequence[Record]) -> Origin:
    """Now, this SDK, and the rows of what shaped the result."""
    return {
        "created": records.timestamp(),
        "tool": tool(),
        "provenance": convert({"inputs": inputs, "tools": tools}, Provenance),
    }


def opening(schema: str, status: str) -> Record:
    """The members that open every record."""
    return {
        "schema": schema,
        "status": status,
        "created": records.timestamp(),
        "tool": tool().to_json(),
    }


def header(schema: str, status: str, inputs: Sequence[Record], tools: Sequence[Record]) -> Record:
    """The members that open a record which says what shaped it."""
    return {**opening(schema, status), "provenance": {"inputs": list(inputs), "tools": list(tools)}}
