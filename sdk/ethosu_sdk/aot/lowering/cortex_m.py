"""ExecuTorch's Cortex-M backend: its quantiser, and its passes over what no NPU computes.

The backend delegates nothing. Its passes put ``cortex_m::`` operators, int8 with CMSIS-NN's arithmetic, in the place
of quantised ones. They are used with explicit layouts (ExecuTorch 1.5.1, ``use_explicit_layout``): images lie in
NHWC, a model in NCHW stays as it is, and each change of the layout is an operator of the program.
"""

from __future__ import annotations

import importlib
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.lowering import cortex_m_passes
from ethosu_sdk.aot.lowering.guarding import guarded

_PACKAGE = "executorch.backends.cortex_m"


def quantizer() -> Any:
    """The backend's quantiser: int8, weights of convolutions per channel."""
    module = importlib.import_module(f"{_PACKAGE}.quantizer.quantizer")
    return module.CortexMQuantizer(use_explicit_layout=True)


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
