"""Equal operators whose results are stored differently: ExecuTorch would keep only one of them.

The Arm backend of ExecuTorch 1.5.1 keeps one of several operators with the same target and arguments. At that point
the quantisation of a result is a note on its operator, at which nobody looks: where two differ, what reads the
dropped result goes on to take the stored numbers by the dropped operator's scale and zero point. That is so in
`torch.cat([torch.sigmoid(x), x])` beside another `torch.sigmoid(x)`: the first is stored in the range of x.

So the note counts among what makes two operators equal.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.aot.graph.patching import patched


def repaired() -> AbstractContextManager[None]:
    """While the block runs, operators with results of different quantisation are not merged in this process."""
    from executorch.backends.arm._passes import FuseDuplicateUsersPass

    inherited = FuseDuplicateUsersPass._build_user_signature

    def signature(self: Any, node: Any) -> tuple[Any, ...] | None:
        alike = inherited(self, node)
        return None if alike is None else (*alike, repr(node.meta.get("output_qparams")))

    return patched(FuseDuplicateUsersPass, _build_user_signature=signature)
