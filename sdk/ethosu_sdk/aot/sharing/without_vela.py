"""The compiler of delegates that keeps what Vela would be given.

In the place of each delegate's commands stands the digest of its TOSA graph.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.graph import lowering_trace, program_facts
from ethosu_sdk.aot.graph.patching import patched
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.sharing.lowered_program import graph_file, origins_file
from ethosu_sdk.aot.vela import capture
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.delegate_compiler import DelegateCompiler
from ethosu_sdk.aot.vela.vela_config import VelaConfig
from ethosu_sdk.files import hashing, writing


@contextlib.contextmanager
def _captured(_config: VelaConfig | None = None) -> Iterator[list[VelaCapture]]:
    """While the block runs, graphs for Vela are kept, and their digests are packed in the place of commands."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend

    captures: list[VelaCapture] = []
    with lowering_trace.traced() as trace:

        def keep(tosa_flatbuffer: bytes, *_: Any, **__: Any) -> Any:
            tosa = bytes(tosa_flatbuffer)
            payload = f"TOSA {hashing.sha256_bytes(tosa)}".encode()
            digest = hashing.sha256_bytes(payload)
            captures.append(VelaCapture(digest, len(payload), tosa, b"", b"", b"", 0, 0, trace.take()))
            return VelaCompileResult(payload)

        with patched(backend, vela_compile=keep):
            yield captures


def _write(
    folder: Path,
    manager: Any,
    captures: Sequence[VelaCapture],
    finder: SourceFinder,
    method: str,
    _prefix: str,
) -> tuple[DelegateFacts, ...]:
    """Write each delegate's graph and origins, in the program's order."""
    arguments = program_facts.delegate_arguments(manager, method)
    facts = []
    for index, turn in enumerate(capture.turns(program_facts.delegate_payloads(manager, method), captures)):
        made = captures[turn]
        found = {name: finder.find(meta) for name, meta in made.nodes.items()}
        sources = {name: asdict(line) for name, line in found.items() if line is not None}
        row = {"turn": turn, "arguments": arguments.get(index), "sources": sources}
        writing.write_bytes(folder / graph_file(index), made.tosa)
        writing.write_bytes(folder / origins_file(index), json.dumps(row).encode())
        facts.append(DelegateFacts(index, made.payload_sha256, 0, graph_file(index), "", "", "", 0, 0, {}))
    return tuple(facts)


WITHOUT_VELA = DelegateCompiler(_captured, _write)
