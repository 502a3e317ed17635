"""Where a run comes from, and what is not known of it."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.report.subject import Subject
from ethosu_sdk.records import Record


def of(subject: Subject) -> dict[str, Any]:
    """Records, files and tools, each once."""
    files: dict[tuple[str, str], Record] = {}
    tools: dict[tuple[str, str], Record] = {}
    for record in subject.records.values():
        for row in record["provenance"]["inputs"]:
            files.setdefault((row["role"], row["sha256"]), row)
        for row in record["provenance"]["tools"]:
            tools.setdefault((row["name"], row["version"]), row)
    return {
        "records": [
            {
                "kind": kind,
                "schema": record["schema"],
                "created": record["created"],
                "tool": _tool(record["tool"]),
            }
            for kind, record in subject.records.items()
        ],
        "files": [{**row, "bytes": row.get("bytes")} for row in files.values()],
        "tools": list(tools.values()),
        "manifest": subject.manifest.files if subject.manifest is not None else (),
    }


def _tool(row: Record) -> str:
    return f"{row['name']} {row['version']}" + (f" ({row['git']})" if "git" in row else "")


def unavailable(subject: Subject) -> list[dict[str, str]]:
    """Figures that no record has, each with the reason."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for kind, record in subject.records.items():
        for row in record.get("unavailable", ()):
            found.setdefault(
                (row["path"], row["reason"]), {"what": f"{kind}: {row['path']}", "reason": row["reason"]}
            )
    return [*({"what": what, "reason": reason} for what, reason in subject.missing.items()), *found.values()]
