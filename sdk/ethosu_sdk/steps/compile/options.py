"""The options of `compile`. The module is imported for every `--help`: it must stay light."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from ethosu_sdk.program_options import ProgramOptions

if TYPE_CHECKING:
    from ethosu_sdk.aot.facts.layers import LayerRequest
    from ethosu_sdk.steps.evaluate.evaluate_command import EvaluateOptions


@dataclass(frozen=True)
class CompileOptions(ProgramOptions):
    """The options of `compile` as given on the command line, not yet checked, and what other commands ask of it.

    With `layers`, the compiler leaves the values of the model's layers.
    """

    target: str = "ethos-u55-128"
    _: KW_ONLY
    system_config: str | None = None
    memory_mode: str | None = None
    require_full_delegation: bool = False
    evaluate: EvaluateOptions | None = None
    check: bool = True
    min_sqnr_db: float | None = None
    layers: LayerRequest | None = None
