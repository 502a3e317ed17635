"""ExecuTorch's Cortex-M backend: its quantiser, and its passes over what no NPU computes.

The backend delegates nothing. Its passes put ``cortex_m::`` operators, int8 with CMSIS-NN's arithmetic, in the place
of quantised ones. They are used with explicit layouts (ExecuTorch 1.5.1, ``use_explicit_layout``): images lie in
NHWC, a model in NCHW stays as it is, and each change of the layout is an operator of the program.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.lowering import cortex_m_passes
from ethosu_sdk.aot.lowering.guarding import guarded

_PACKAGE = "executorch.backends.cortex_m"
_WEIGHTED = ("aten.conv", "aten.linear")


def quantizer() -> Any:
    """The backend's quantiser: int8, weights of convolutions per channel. Layers whose weights the program computes
    stay in floating point: the backend's own would quantise them as activations, and the bias as if they were not."""
    module = importlib.import_module(f"{_PACKAGE}.quantizer.quantizer")
    made = module.CortexMQuantizer(use_explicit_layout=True)
    for matcher in {row.pattern_matcher for row in made.quantizers if hasattr(row, "pattern_matcher")}:
        matcher.support_dict = {
            pattern: _with_stored_weights(check) if str(pattern[0]).startswith(_WEIGHTED) else check
            for pattern, check in matcher.support_dict.items()
        }
    return made


def _with_stored_weights(check: Any) -> Any:
    """`check`, the conditions for a pattern of operators, for weights that the model stores."""

    class Check(check):  # type: ignore[misc]
        @classmethod
        def check_pattern(cls, pattern: Sequence[Any]) -> bool:
            return pattern[0].args[1].op == "get_attr" and bool(super().check_pattern(pattern))

    return Check


def edge_configuration() -> Any:
    """The operators that must reach the passes whole."""
    module = importlib.import_module(f"{_PACKAGE}.edge_compile_config")
    return module.cortex_m_edge_compile_config()


def replace(edge: Any, core: str) -> Any:
    """`edge`, a program manager, with ``cortex_m::`` operators for the processor `core` wherever the passes put
    them."""
    passes = importlib.import_module(f"{_PACKAGE}.passes.cortex_m_pass_manager")
    configurations = importlib.import_module(f"{_PACKAGE}.target_config")
    target = configurations.CortexMTargetConfig.from_target_string(core)
    program = edge.exported_program()
    manager = passes.CortexMPassManager(program, passes=cortex_m_passes.listed(), target_config=target)
    edge._edge_programs[pte.ENTRY] = guarded("lowering to Cortex-M failed", manager.transform)
    return edge
