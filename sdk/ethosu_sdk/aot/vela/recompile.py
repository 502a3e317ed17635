"""Compiles a program's TOSA graphs with other versions of Vela: the same program with new payloads.

ExecuTorch packs payloads and programs, in a child process (:mod:`ethosu_sdk.aot.vela.recompile_worker`).
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import proc
from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.vela import versions
from ethosu_sdk.errors import BuildError, ToolError
from ethosu_sdk.files import json_text, writing

LOG_NAME = "vela.log"
RESULT_NAME = "result.json"
_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Recompiled:
    """A program by one version of Vela: its delegates, or the `reason` why there is none."""

    version: str
    delegates: tuple[DelegateFacts, ...]
    reason: str = ""


def recompile(pte: Path, graphs: Sequence[Path], folders: Mapping[str, Path]) -> list[Recompiled]:
    """The program `pte`, whose delegates were made of the TOSA `graphs`, by the versions of Vela whose results go to
    `folders`, under the same names. ToolError when a version or ExecuTorch is not there."""
    if importlib.util.find_spec("executorch") is None:
        raise ToolError("packing programs needs ExecuTorch's package", "pip install 'ethosu-sdk[compile]'")
    paths = {version: versions.python_path(version) for version in folders}
    first = next(iter(folders.values()))
    result = first.resolve() / f".{RESULT_NAME}"
    request = {
        "pte": str(pte.resolve()),
        "graphs": [str(path.resolve()) for path in graphs],
        "result": str(result),
        "versions": [
            {"version": name, "path": paths[name], "folder": str(folder.resolve())}
            for name, folder in folders.items()
        ],
    }
    command = [sys.executable, "-P", "-m", "ethosu_sdk.aot.vela.recompile_worker", json.dumps(request)]
    try:
        done = proc.run(command, timeout_s=_TIMEOUT_S, log=first / LOG_NAME, error=BuildError, check=False)
        if done.returncode:
            lines = done.output.strip().splitlines()
            raise BuildError(
                f"the program's payloads could not be replaced: {lines[-1] if lines else 'nothing was printed'}",
                f"{first / LOG_NAME} holds what the tools printed",
            )
        found = json_text.read_json(result)
    finally:
        result.unlink(missing_ok=True)
    for folder in folders.values():
        if folder != first:
            writing.write_bytes(folder / LOG_NAME, (first / LOG_NAME).read_bytes())
    return [
        Recompiled(name, crossing.from_json(tuple[DelegateFacts, ...], row["delegates"]), row["reason"])
        for name, row in found.items()
    ]
