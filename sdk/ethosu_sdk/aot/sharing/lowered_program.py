"""A program that was lowered without Vela: what lies in its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.compilation import CompileOutput
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.files import writing

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


def write_facts(folder: Path, output: CompileOutput, reads: dict[str, str]) -> None:
    """Write down what a lowering gave, and the files that it read."""
    facts = crossing.to_text({"output": output, "reads": reads})
    writing.write_bytes(folder / FACTS_NAME, facts.encode())


def read(folder: Path) -> Lowered:
    """What a lowering left in `folder`, wherever that is now."""
    facts = json.loads((folder / FACTS_NAME).read_text(encoding="utf-8"))
    output = crossing.from_json(CompileOutput, facts["output"])
    return Lowered(
        folder,
        output,
        tuple(_delegate(folder, index) for index in range(len(output.delegates))),
        facts["reads"],
    )


def _delegate(folder: Path, index: int) -> LoweredDelegate:
    row = json.loads((folder / origins_file(index)).read_text(encoding="utf-8"))
    sources = {name: SourceLine(**line) for name, line in row["sources"].items()}
    return LoweredDelegate(folder / graph_file(index), row["turn"], row["arguments"], sources)


def graph_file(index: int) -> str:
    """The name of a delegate's TOSA graph."""
    return f"delegate{index}.tosa"


def origins_file(index: int) -> str:
    """The name of the file with a delegate's turn, arguments and lines."""
    return f"delegate{index}.origins.json"
