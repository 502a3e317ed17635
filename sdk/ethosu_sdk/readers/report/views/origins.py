"""The records and tools of a run, and its unknown figures."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import ProvenanceInput, ProvenanceTool, Tool


def of(inputs: Inputs) -> dict[str, Any]:
    """Records, files and tools, each once."""
    files: dict[tuple[str, str], ProvenanceInput] = {}
    tools: dict[tuple[str, str], ProvenanceTool] = {}
    for record in inputs.records.values():
        for row in record.provenance.inputs:
            files.setdefault((row.role, row.sha256), row)
        for tool in record.provenance.tools:
            tools.setdefault((tool.name, tool.version), tool)
    return {
        "records": [
            {
                "kind": kind,
                "schema": kinds.schema(record),
                "created": record.created,
                "tool": _tool(record.tool),
            }
            for kind, record in inputs.records.items()
        ],
        "files": list(files.values()),
        "tools": list(tools.values()),
        "manifest": inputs.manifest.files if inputs.manifest is not None else (),
    }


def _tool(row: Tool) -> str:
    return f"{row.name} {row.version}" + (f" ({row.git})" if row.git is not None else "")


def unavailable(inputs: Inputs) -> list[dict[str, str]]:
    """Figures that no record has, each with the reason."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for kind, record in inputs.records.items():
        for row in record.unavailable:
            found.setdefault((row.path, row.reason), {"what": f"{kind}: {row.path}", "reason": row.reason})
    return [*({"what": what, "reason": reason} for what, reason in inputs.missing.items()), *found.values()]
