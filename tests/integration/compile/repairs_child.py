"""Compiles the networks of repaired_models.py, all in one process: torch is imported once.

Usage: repairs_child.py FOLDER. Each network's folder gets ``facts.json``: the facts of the compilation, or how it
failed. What is compiled `untouched` gets none of the repairs.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import records
from ethosu_sdk.aot import CompileRequest, pipeline
from ethosu_sdk.aot.lowering import steps as lowering
from ethosu_sdk.errors import BuildError
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.targets import parse_target

MODELS = Path(__file__).with_name("repaired_models.py")


@dataclass(frozen=True)
class Compilation:
    """One network for one target."""

    model: str
    target: str
    untouched: bool = False
    quantize: str = "int8"

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.model}-{self.target}-{self.quantize}" + "-untouched" * self.untouched


TARGETS = ("ethos-u55-128", "ethos-u85-256")
REPAIRED = tuple(
    Compilation(model, target)
    for model in ("sharing", "segmentation", "parts", "batches", "negations", "duplicates", "taps")
    for target in TARGETS
)
INT16 = tuple(Compilation("negations", target, quantize="int16") for target in TARGETS)
CRASHING = Compilation("windows", "ethos-u65-256")  # Vela's end is this process's, were it not for the repair
UNTOUCHED = (
    Compilation("sharing", "ethos-u55-128", True),
    Compilation("taps", "ethos-u85-256", True),
    *(Compilation("negations", "ethos-u55-128", True, quantize) for quantize in ("int8", "int16")),
    Compilation("duplicates", "ethos-u55-128", True),
)


def main() -> None:
    """Compile everything below the folder of the command line."""
    repaired = lowering.repaired
    for case in (*REPAIRED, *INT16, CRASHING, *UNTOUCHED):
        folder = records.make_directory(Path(sys.argv[1]) / case.name)
        lowering.repaired = contextlib.nullcontext if case.untouched else repaired
        request = CompileRequest(
            f"{MODELS}:{case.model}",
            parse_target(case.target),
            folder,
            options=ProgramOptions(quantize=case.quantize),
        )
        try:
            facts = pipeline.run(request, lambda stage: None).to_json()
        except BuildError as error:
            facts = {"message": error.message, "hint": error.hint}
        records.write_json(folder / "facts.json", facts)


if __name__ == "__main__":
    main()
