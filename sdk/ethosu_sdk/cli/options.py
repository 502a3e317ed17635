"""What several commands have in common: options that belong to no option dataclass, and those of every command."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ethosu_sdk.compile.program_options import DATA, VELA_CONFIG, Option, option
from ethosu_sdk.reporting.compare.options import LOOSE

if TYPE_CHECKING:
    from ethosu_sdk.base.terminal import Reporter


Loose = Annotated[bool, LOOSE]
VelaConfig = Annotated[Path | None, VELA_CONFIG]
Data = Annotated[list[Path] | None, DATA]
OutDir = Annotated[
    Path | None,
    Option(
        "Write the results to this folder.",
        short="-o",
        metavar="DIR",
        shown_default="the program's folder, or one below build",
    ),
]
Pte = Annotated[Path, Option("An ExecuTorch program.", metavar="MODEL.pte")]
_SOURCES = (
    "FILE.py[:NAME], FILE.pt2, FILE.tflite, FILE.onnx or zoo:NAME. A .py file is executed as by Python: use only "
    "files that you trust. A .pt2 file that could run code is refused without --trust."
)
Model = Annotated[str, Option(f"MODEL.pte, {_SOURCES}", metavar="MODEL", completion="models")]
SourceModel = Annotated[str, Option(_SOURCES, metavar="MODEL", completion="models")]


# The panels in which a long `--help` lists options, in this order; those of no panel come first.
PANELS = {
    "Model": ("--data", "--method", "--trust"),
    "Compile": (
        *(
            "--target",
            "--system-config",
            "--memory-mode",
            "--quantize",
            "--quantize-per",
            "--calibration",
            "--io",
        ),
        *("--fallback", "--require-full-delegation"),
    ),
    "Board": (
        "--system",
        "--simulator",
        "--device",
        "--runtime",
        "--board",
        "--cpu-cycles",
        "--no-cpu-cycles",
        "--cpu-clock-mhz",
    ),
    "Inputs": ("--inputs", "--steps", "--feed", "--repeat", "--keep-state", "--state", "--script"),
    "Outputs": (
        "--output",
        "--outputs",
        "--save-state",
        "--expect",
        "--atol",
        "--rtol",
        "--growth",
        "--rows",
    ),
    "Expert": (
        *("--no-delegate", "--as-written", "--vela-config", "--extra-vela-flag", "--no-check", "--etrecord"),
        *("--timeout", "--events", "--memory-timing", "--fast", "--simulated-limit", "--resident", "--split"),
        *("--data-memory", "--allow-spill", "--clock-mhz", "--prefill"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What a command prints, and in which form."""

    json: bool = option(
        False, Option("Print only the JSON record on stdout; everything else goes to stderr.")
    )
    quiet: bool = option(False, Option("Print warnings and errors only.", short="-q"))
    verbose: bool = option(False, Option("Print all that is known, and each step.", short="-v"))
    debug: bool = option(False, Option("Show the traceback of an error."))

    @classmethod
    def of_line(cls, words: Sequence[str]) -> "Invocation":
        """As the unparsed `words` of a command line say: for errors, which may come before they are parsed."""
        return cls(json="--json" in words, debug="--debug" in words)

    def reporter(self) -> "Reporter":
        """Where the command's progress and results go."""
        from ethosu_sdk.base.terminal import Reporter

        return Reporter(as_json=self.json, quiet=self.quiet, verbose=self.verbose)
