"""One lowering for many targets: a program with its TOSA graphs, for which Vela is called later, target by target.
ExecuTorch partitions and lowers for a TOSA specification, of which there are two: that of Ethos-U55 and U65, and that
of Ethos-U85. System configuration, memory mode and Vela's version come after it, and so does the MAC count, but for
Ethos-U55-32 and -64, whose look-up tables need rewrites of their own (:mod:`ethosu_sdk.compile.rewrite.table`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.targets import AnyTarget, Target, parse_target
from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.compile_facts import CompileOutput
from ethosu_sdk.compile.rewrite.table import TARGETS_WITHOUT_TABLE_BANKS
from ethosu_sdk.records.common import SourceLine

# TOSA extensions in ExecuTorch 1.5.1's EthosUCompileSpec, by family.
_VARIANTS = {"ethos-u55": "u55", "ethos-u65": "u55", "ethos-u85": "cf"}
# A target of each: which one it is makes no difference to what is lowered.
_REPRESENTATIVES = {"u55": "ethos-u55-128", "u55-small": "ethos-u55-64", "cf": "ethos-u85-256"}


def tosa_variant(target: Target) -> str:
    """The TOSA specification that `target` is lowered to; a name of its own where look-up tables need care."""
    return "u55-small" if target.name in TARGETS_WITHOUT_TABLE_BANKS else _VARIANTS[target.npu]


def lowering_variant(target: AnyTarget) -> str:
    """The same of any target: each processor is lowered for by itself."""
    return tosa_variant(target) if isinstance(target, Target) else target.name


def representative_target(target: AnyTarget) -> AnyTarget:
    """The target that programs for `target`, and for all that are lowered alike, are lowered for."""
    if not isinstance(target, Target):
        return target
    return parse_target(_REPRESENTATIVES[tosa_variant(target)])


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
        return self.folder / CHECK_FOLDER


def write_facts(folder: Path, output: CompileOutput, reads: dict[str, str]) -> None:
    facts = compile_facts.to_json({"output": output, "reads": reads})
    filesystem.write_bytes(folder / FACTS_NAME, facts.encode())


def read_lowered(folder: Path) -> Lowered:
    """What a lowering left in `folder`, wherever that is now."""
    facts = json.loads((folder / FACTS_NAME).read_text(encoding="utf-8"))
    output = compile_facts.from_json(CompileOutput, facts["output"])
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
    return f"delegate{index}.tosa"


def origins_file(index: int) -> str:
    """The name of the file with a delegate's turn, arguments and lines."""
    return f"delegate{index}.origins.json"
