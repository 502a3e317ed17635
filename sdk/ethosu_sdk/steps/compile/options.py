"""The options of `compile`. The module is imported for every `--help`: it must stay light."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from ethosu_sdk.program_options import Option, ProgramOptions, option
from ethosu_sdk.targets import DEFAULT_TARGET

if TYPE_CHECKING:
    from ethosu_sdk.aot.facts.layers import LayerRequest
    from ethosu_sdk.steps.evaluate.evaluate_command import EvaluateOptions

# What commands offer that only need a program for some target.
FOR_A_TARGET = ("target", "system_config", "memory_mode", "system", "trust")


@dataclass(frozen=True)
class TargetOptions:
    """The NPU or processor that a program is for, and one of the configurations that Vela has for its family."""

    target: str | None = option(
        None,
        Option(
            "The NPU to compile for, with its MACs per cycle, or the processor.",
            metavar="NAME",
            shown_default=f"{DEFAULT_TARGET}, or that of --system",
            completion="targets",
        ),
    )
    _: KW_ONLY
    system_config: str | None = option(
        None,
        Option(
            "Vela system configuration.",
            metavar="NAME",
            shown_default="that of --system, or the NPU family's",
            completion="system_configs",
        ),
    )
    memory_mode: str | None = option(
        None,
        Option(
            "Vela memory mode.",
            metavar="NAME",
            shown_default="that of --system, or the NPU family's",
            completion="memory_modes",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CompileOptions(ProgramOptions, TargetOptions):
    """The options of `compile` as given on the command line, not yet checked, and what other commands ask of it.

    With `layers`, the compiler leaves the values of the model's layers. `lines` of Python change the model once its
    file was executed; a record of the program does not know them.
    """

    evaluate: "EvaluateOptions | None" = None
    min_sqnr_db: float | None = None
    layers: "LayerRequest | None" = None
    lines: tuple[str, ...] = ()
