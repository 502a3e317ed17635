"""Flatbuffers of ExecuTorch's tools: flatc writes them, after the schemas in ExecuTorch's package."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ethosu_sdk import proc, tools
from ethosu_sdk.errors import ToolError
from ethosu_sdk.pte import executorch_package

_TIMEOUT_S = 120.0


def write(schema: str, value: Any) -> bytes:
    """`value` as the root of `schema`, the path of a schema in the package.

    ToolError when flatc or the package is missing, or does not take what is written.
    """
    path = executorch_package.root() / schema
    if not path.is_file():
        raise ToolError(f"the installed executorch package has no {schema}", "install executorch 1.5.1")
    flatc = tools.require("flatc").path
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-flatc-") as name:
        folder = Path(name)
        source = folder / "value.json"
        source.write_text(json.dumps(value, allow_nan=False), encoding="utf-8")
        argv = [str(flatc), "--binary", "-o", str(folder), str(path), str(source)]
        proc.run(argv, timeout_s=_TIMEOUT_S, error=ToolError)
        (found,) = (part for part in folder.iterdir() if part != source)
        return found.read_bytes()
