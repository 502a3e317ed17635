"""Convolutions of 16 bits whose results arithmetic of 32 bits reads, on Ethos-U55 and Ethos-U65.

ExecuTorch 1.5.1 hands them on as 32 bits that were never 16 bits wide. Vela 5.1.0 refuses such a convolution where
others read its 16 bits too, with no word of the operator; alone, it gives other values. So they pass through 16 bits,
as the quantised model has them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.aot.graph.patching import patched


def repaired() -> AbstractContextManager[None]:
    """While the block runs, results of convolutions of 16 bits are that wide, where there is no other way."""
    from executorch.backends.arm._passes import RewriteConvPass
    from executorch.backends.arm.tosa.specification import get_context_spec

    inherited = RewriteConvPass._insert_a16w8_output_branches

    def branches(self: Any, *arguments: Any) -> None:
        if not get_context_spec().is_U55_subset:
            inherited(self, *arguments)

    return patched(RewriteConvPass, _insert_a16w8_output_branches=branches)
