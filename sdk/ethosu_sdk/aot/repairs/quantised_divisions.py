"""Divisions of integers, of which an Ethos-U55 or U65 would make divisions of quantised numbers.

For a target without INTDIV, the quantiser of ExecuTorch 1.5.1 takes a division of integers with a rounding mode for
one of floats, and gives it 256 steps: what is right for small numbers is wrong for larger ones. So it stays one of
integers; the CPU has a kernel for it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.aot.graph.patching import patched


def repaired() -> AbstractContextManager[None]:
    """While the block runs, divisions of integers with a rounding mode stay as they are, where there is no INTDIV."""
    from executorch.backends.arm._passes import DecomposeDivTensorModePass
    from executorch.backends.arm.tosa.specification import get_context_spec
    from executorch.exir.pass_base import ExportPass

    inherited = DecomposeDivTensorModePass.call_operator

    def call_operator(self: Any, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        whole = op in self.target_ops and all(self._is_integer_tensor(value) for value in args[:2])
        if whole and kwargs.get("rounding_mode") and get_context_spec().is_U55_subset:
            return ExportPass.call_operator(self, op, args, kwargs, meta)
        return inherited(self, op, args, kwargs, meta)

    return patched(DecomposeDivTensorModePass, call_operator=call_operator)
