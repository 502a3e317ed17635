"""Compiles a program's TOSA graphs with other versions of Vela: the same program with new payloads.

ExecuTorch's own function calls Vela and packs what that wrote; here another Vela is called in its place, in a fork of
a process that has ExecuTorch imported.
"""

from __future__ import annotations

import importlib.util
import json
import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import plain_text, pte
from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela import another, artefacts, delegate_tables, versions
from ethosu_sdk.errors import BuildError, SdkError, ToolError
from ethosu_sdk.files import opening, writing
from ethosu_sdk.proc import forks
from ethosu_sdk.proc.forks import Task

LOG_NAME = "vela.log"
_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Recompiled:
    """A program by one version of Vela: its delegates, or the `reason` why there is none."""

    version: str
    delegates: tuple[DelegateFacts, ...]
    reason: str = ""


def recompile(program: Path, graphs: Sequence[Path], folders: Mapping[str, Path]) -> list[Recompiled]:
    """The program in a file, whose delegates were made of the TOSA `graphs`, by the versions of Vela whose results go
    to `folders`, under the same names. ToolError when a version or ExecuTorch is not there."""
    if importlib.util.find_spec("executorch") is None:
        raise ToolError("packing programs needs ExecuTorch's package", "pip install 'ethosu-sdk[compile]'")
    paths = {version: versions.python_path(version) for version in folders}
    log = next(iter(folders.values())) / LOG_NAME
    log.unlink(missing_ok=True)
    task = {"program": str(program.resolve()), "graphs": [str(path.resolve()) for path in graphs]}
    found = []
    with forks.server(__name__, log) as server:
        for version, folder in folders.items():
            more = {"path": paths[version], "folder": str(folder.resolve())}
            answer = server.call({**task, **more}, _TIMEOUT_S, None)
            result = answer.result or {"error": f"the process ended ({answer.end}) {answer.detail}".rstrip()}
            if "error" in result:
                raise BuildError(
                    f"the program's payloads could not be replaced: {result['error']}",
                    f"{folder / LOG_NAME} holds what the tools printed",
                )
            delegates = crossing.from_json(tuple[DelegateFacts, ...], result["delegates"])
            found.append(Recompiled(version, delegates, result["reason"]))
    return found


def prepare() -> None:
    """Import what packs payloads and programs."""
    import executorch.backends.arm.ethosu
    import executorch.exir._serialize._program

    del executorch


def perform(task: Task) -> dict[str, Any]:
    """Write the program of `task` by one version of Vela; its facts, or why there are none."""
    folder, path = Path(task["folder"]), Path(task["program"])
    with opening.replacing(folder / LOG_NAME) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    content = path.read_bytes()
    if _bytes(_read(content)) != content:
        text = f"{path.name} was not written by this version of ExecuTorch: its payloads cannot be replaced"
        return {"error": text}
    try:
        graphs = [Path(graph).read_bytes() for graph in task["graphs"]]
        made = _recompiled(content, graphs, task["path"], folder, path.name)
        return {"delegates": json.loads(crossing.to_text(made)), "reason": ""}
    except SdkError as error:
        return {"delegates": [], "reason": error.message}
    except Exception as error:  # a version may write anything: the others go on
        traceback.print_exc()
        return {"delegates": [], "reason": f"Vela's results cannot be read: {plain_text.error(error)}"}


def _read(content: bytes) -> Any:
    """The program as ExecuTorch reads it, to be changed."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    return deserialize_pte_binary(content)


def _bytes(file: Any) -> bytes:
    from executorch.exir._serialize._program import serialize_pte_binary

    return bytes(serialize_pte_binary(file))


def _recompiled(
    content: bytes, graphs: Sequence[bytes], vela: str, folder: Path, name: str
) -> tuple[DelegateFacts, ...]:
    """Write the program by the Vela in the path `vela` to `folder`, with its artefacts."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    file = _read(content)
    facts = []
    (plan,) = (plan for plan in file.program.execution_plan if plan.name == pte.ENTRY)
    for index, (delegate, graph) in enumerate(zip(plan.delegates, graphs, strict=True)):
        flags = EthosUCompileSpec._from_list(list(delegate.compile_specs)).compiler_flags
        payload, reports = another.compile_graph(graph, flags, vela)
        file.program.backend_delegate_data[delegate.processed.index].data = payload
        facts.append(artefacts.write_one(folder, index, reports, SourceFinder(None)))
        delegate_tables.check(facts[-1], payload)
    writing.write_bytes(folder / name, _bytes(file))
    return tuple(facts)
