"""Compiles the networks of repaired_models.py, all in one process: torch is imported once.

Usage: repairs_child.py FOLDER. Each network's folder gets ``facts.json``: the facts of the compilation, or how it
failed. What is compiled `untouched` gets none of the repairs; PLANTS are faults of the repair of look-up tables.
"""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import compile_facts, lowering, vela_checks, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.compile.rewrite import tosa_transposes

MODELS = Path(__file__).with_name("repaired_models.py")


@dataclass(frozen=True)
class Compilation:
    """One network for one target."""

    model: str
    target: str
    untouched: bool = False
    quantize: str = "int8"
    plant: str = ""

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.model}-{self.target}-{self.quantize}{self.plant}" + "-untouched" * self.untouched


def _halved_copy(graph: Any, value: Any) -> Any:
    """As `graph_passes.unchanged_copy`, with a limit that values reach."""
    from executorch.exir.dialects._ops import ops

    changed = graph.call_function(ops.backend.tosa.CLAMP.default, (value, -128, 0))
    changed.meta = dict(value.meta)
    return changed


PLANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "-unmoved": (tosa_transposes, "hoist_tables", lambda graph: False),
    "-unseparated": (tosa_transposes, "reload_tables", lambda graph: False),
    "-halved": (tosa_transposes, "unchanged_copy", _halved_copy),
    "-unseen": (vela_checks, "check_tables", lambda delegate, payload: None),  # as others compile
}


TARGETS = ("ethos-u55-128", "ethos-u85-256")
REPAIRED = tuple(
    Compilation(model, target)
    for model in ("sharing", "segmentation", "parts", "batches", "negations", "duplicates", "taps")
    for target in TARGETS
)
BATCHED = (
    *(Compilation("reduced", target) for target in TARGETS),
    *(Compilation("sequences", target, quantize="int16") for target in TARGETS),
    Compilation("normalised", TARGETS[0]),
    Compilation("normalised", TARGETS[0], quantize="int16"),
)
INT16 = tuple(Compilation("negations", target, quantize="int16") for target in TARGETS)
TABLES = tuple(Compilation("tables", target) for target in ("ethos-u55-32", "ethos-u55-64"))
TABLES_INT16 = Compilation("tables", "ethos-u55-32", quantize="int16")
LOST = (
    Compilation("tables", "ethos-u55-64", untouched=True),
    *(Compilation("tables", "ethos-u55-64", plant=plant) for plant in ("-unmoved", "-unseparated")),
)
HALVED = Compilation("tables", "ethos-u55-64", plant="-halved")
UNSEEN = Compilation("tables", "ethos-u55-64", untouched=True, plant="-unseen")
LARGER = tuple(Compilation("tables", target, untouched=True) for target in ("ethos-u55-128", "ethos-u65-256"))
CRASHING = Compilation("windows", "ethos-u65-256")  # Vela's end is this process's, were it not for the repair
UNTOUCHED = (
    Compilation("sharing", "ethos-u55-128", True),
    Compilation("taps", "ethos-u85-256", True),
    *(Compilation("negations", "ethos-u55-128", True, quantize) for quantize in ("int8", "int16")),
    Compilation("duplicates", "ethos-u55-128", True),
)


def main() -> None:
    """Compile everything below the folder of the command line."""
    repaired = lowering.rewrites_installed
    tables = (*TABLES, TABLES_INT16, *LOST, HALVED, UNSEEN, *LARGER)
    for case in (*REPAIRED, *BATCHED, *INT16, *tables, CRASHING, *UNTOUCHED):
        folder = filesystem.make_directory(Path(sys.argv[1]) / case.name)
        lowering.rewrites_installed = contextlib.nullcontext if case.untouched else repaired
        request = CompileRequest(
            f"{MODELS}:{case.model}",
            parse_target(case.target),
            folder,
            options=ProgramOptions(quantize=case.quantize, as_written=True),
        )
        plant = mock.patch.object(*PLANTS[case.plant]) if case.plant else contextlib.nullcontext()
        try:
            with plant:
                facts: Any = worker.run_stages(request, lambda stage: None)
        except SdkError as error:
            facts = error.to_json()
        (folder / "facts.json").write_text(compile_facts.to_json(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
