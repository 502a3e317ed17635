"""A program that was lowered without Vela: what lies in its folder, and how that is made.

In the place of each delegate's commands stands the digest of its TOSA graph. Runs in a process that may import torch.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.aot import program_facts
from ethosu_sdk.aot.api import CompileOutput, CompileRequest, DelegateFacts
from ethosu_sdk.aot.model.source_line import SourceLine
from ethosu_sdk.aot.model.source_lines import SourceFinder
from ethosu_sdk.aot.vela import capture
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.config import VelaConfig
from ethosu_sdk.files import hashing, writing

FACTS_NAME = "lowering.json"
CHECK_FOLDER, EVALUATION_FOLDER = "check", "evaluation"  # what is compared with


@dataclass(frozen=True)
class LoweredDelegate:
    """A delegate before Vela: its TOSA graph, its turn among those that were lowered, with how many tensors it is
    called, and the model's line behind each tensor of the graph."""

    tosa: Path
    turn: int
    arguments: int | None
    sources: dict[str, SourceLine]


@dataclass(frozen=True)
class Lowered:
    """The program in `folder`: facts as of a compilation, whose `delegates` are still to be compiled. `reads` are the
    digests of the files that the model read, by their absolute paths."""

    folder: Path
    output: CompileOutput
    delegates: tuple[LoweredDelegate, ...]
    reads: dict[str, str]

    @property
    def check_folder(self) -> Path:
        """What a check compares with."""
        return self.folder / CHECK_FOLDER


def lower(request: CompileRequest, progress: Callable[[str], None]) -> CompileOutput:
    """Lower the model of `request`, whose folders exist, and write all but the facts.

    Raises what a compilation raises, but for what Vela refuses.
    """
    from ethosu_sdk.aot import pipeline
    from ethosu_sdk.aot.delegate_compiler import DelegateCompiler

    return pipeline.run(request, progress, DelegateCompiler(_captured, _write))


def write_facts(folder: Path, output: CompileOutput, reads: dict[str, str]) -> None:
    """Write down what :func:`lower` gave, and the files that it read."""
    facts = {"output": output.to_json(), "reads": reads}
    writing.write_bytes(folder / FACTS_NAME, json.dumps(facts).encode())


def read(folder: Path) -> Lowered:
    """What :func:`lower` left in `folder`, wherever that is now."""
    facts = json.loads((folder / FACTS_NAME).read_text(encoding="utf-8"))
    output = CompileOutput.from_json(facts["output"])
    return Lowered(
        folder,
        output,
        tuple(_delegate(folder, index) for index in range(len(output.delegates))),
        facts["reads"],
    )


def _delegate(folder: Path, index: int) -> LoweredDelegate:
    row = json.loads((folder / _origins(index)).read_text(encoding="utf-8"))
    sources = {name: SourceLine(**line) for name, line in row["sources"].items()}
    return LoweredDelegate(folder / _graph(index), row["turn"], row["arguments"], sources)


def _graph(index: int) -> str:
    return f"delegate{index}.tosa"


def _origins(index: int) -> str:
    return f"delegate{index}.origins.json"


@contextlib.contextmanager
def _captured(_config: VelaConfig | None = None) -> Iterator[list[VelaCapture]]:
    """While the block runs, graphs for Vela are kept, and their digests are packed in the place of commands."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend

    from ethosu_sdk.aot.lowering import trace as lowering_trace

    captures: list[VelaCapture] = []
    original = backend.vela_compile
    with lowering_trace.traced() as trace:

        def keep(tosa_flatbuffer: bytes, *_: Any, **__: Any) -> Any:
            tosa = bytes(tosa_flatbuffer)
            payload = f"TOSA {hashing.sha256_bytes(tosa)}".encode()
            digest = hashing.sha256_bytes(payload)
            captures.append(VelaCapture(digest, len(payload), tosa, b"", b"", b"", 0, 0, trace.take()))
            return VelaCompileResult(payload)

        backend.vela_compile = keep
        try:
            yield captures
        finally:
            backend.vela_compile = original


def _write(
    folder: Path, manager: Any, captures: Sequence[VelaCapture], finder: SourceFinder
) -> tuple[DelegateFacts, ...]:
    """Write each delegate's graph and origins, in the program's order."""
    arguments = program_facts.delegate_arguments(manager)
    facts = []
    for index, turn in enumerate(capture.turns(program_facts.delegate_payloads(manager), captures)):
        made = captures[turn]
        found = {name: finder.find(meta) for name, meta in made.nodes.items()}
        sources = {name: asdict(line) for name, line in found.items() if line is not None}
        row = {"turn": turn, "arguments": arguments.get(index), "sources": sources}
        writing.write_bytes(folder / _graph(index), made.tosa)
        writing.write_bytes(folder / _origins(index), json.dumps(row).encode())
        digest = hashing.sha256_bytes(made.tosa)
        facts.append(
            DelegateFacts(index, made.payload_sha256, 0, _graph(index), digest, "", "", "", 0, 0, {})
        )
    return tuple(facts)
