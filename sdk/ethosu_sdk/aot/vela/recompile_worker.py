"""The process that replaces the payloads of a program: ``python -m ethosu_sdk.aot.vela.recompile_worker REQUEST``.

ExecuTorch's own function calls Vela and packs what that wrote; here another Vela is called in its place.
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import plain_text, pte
from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela import another, artefacts, delegate_tables
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.files import json_text, writing


@dataclass(frozen=True)
class _Program:
    """A program as ExecuTorch reads it, with the TOSA graphs of its delegates."""

    name: str
    content: bytes
    graphs: tuple[bytes, ...]

    def read(self) -> Any:
        """It, to be changed."""
        from executorch.exir._serialize._program import deserialize_pte_binary

        return deserialize_pte_binary(self.content)


def main() -> None:
    """Serve the request of the command line; the facts go to its file ``result``."""
    request = json.loads(sys.argv[1])
    path = Path(request["pte"])
    graphs = tuple(Path(graph).read_bytes() for graph in request["graphs"])
    program = _Program(path.name, path.read_bytes(), graphs)
    if _bytes(program.read()) != program.content:
        raise InputError(
            f"{path.name} was not written by this version of ExecuTorch: its payloads cannot be replaced"
        )
    found = {}
    for row in request["versions"]:
        print(f"# Vela {row['version']}", flush=True)
        try:
            made = _recompiled(program, row["path"], Path(row["folder"]))
            found[row["version"]] = {"delegates": [asdict(part) for part in made], "reason": ""}
        except SdkError as error:
            found[row["version"]] = {"delegates": [], "reason": error.message}
        except Exception as error:  # a version may write anything: the others go on
            traceback.print_exc()
            reason = f"Vela's results cannot be read: {plain_text.error(error)}"
            found[row["version"]] = {"delegates": [], "reason": reason}
    json_text.write_json(Path(request["result"]), found)


def _bytes(file: Any) -> bytes:
    from executorch.exir._serialize._program import serialize_pte_binary

    return bytes(serialize_pte_binary(file))


def _recompiled(program: _Program, path: str, folder: Path) -> list[DelegateFacts]:
    """Write the program by the Vela in `path` to `folder`, with its artefacts."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    file = program.read()
    facts = []
    (plan,) = (plan for plan in file.program.execution_plan if plan.name == pte.ENTRY)
    for index, (delegate, graph) in enumerate(zip(plan.delegates, program.graphs, strict=True)):
        flags = EthosUCompileSpec._from_list(list(delegate.compile_specs)).compiler_flags
        payload, reports = another.compile_graph(graph, flags, path)
        file.program.backend_delegate_data[delegate.processed.index].data = payload
        facts.append(artefacts.write_one(folder, index, reports, SourceFinder(None)))
        delegate_tables.check(facts[-1], payload)
    writing.write_bytes(folder / program.name, _bytes(file))
    return facts


if __name__ == "__main__":
    try:
        main()
    except SdkError as error:
        sys.exit(error.message)
    except Exception as error:  # the last line becomes the user's error; the log has the rest
        traceback.print_exc()
        sys.exit(plain_text.error(error))
