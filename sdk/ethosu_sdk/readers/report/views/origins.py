"""The records and tools of a run, and its unknown figures."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records import Record


def of(inputs: Inputs) -> dict[str, Any]:
    """Records, files and tools, each once."""
    files: dict[tuple[str, str], Record] = {}
    tools: dict[tuple[str, str], Record] = {}
    for record in inputs.records.values():
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
            for kind, record in inputs.records.items()
        ],
        "files": [{**row, "bytes": row.get("bytes")} for row in files.values()],
        "tools": list(tools.values()),
        "manifest": inputs.manifest.files if inputs.manifest is not None else (),
    }


def _tool(row: Record) -> str:
    return f"{row['name']} {row['version']}" + (f" ({row['git']})" if "git" in row else "")


def unavailable(inputs: Inputs) -> list[dict[str, str]]:
    """Figures that no record has, each with the reason."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for kind, record in inputs.records.items():
        for row in record.get("unavailable", ()):
            found.setdefault(
                (row["path"], row["reason"]), {"what": f"{kind}: {row['path']}", "reason": row["reason"]}
            )
    return [*({"what": what, "reason": reason} for what, reason in inputs.missing.items()), *found.values()]
