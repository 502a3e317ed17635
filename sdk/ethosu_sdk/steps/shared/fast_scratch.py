"""How much fast scratch memory delegates need: a payload does not say it, its commands do."""

from __future__ import annotations

from collections.abc import Iterable

from ethosu_sdk import pte, vela_blocks
from ethosu_sdk.errors import SdkError


def most_bytes(plans: Iterable[pte.ExecutionPlan]) -> int | None:
    """What the delegates of `plans` write to fast scratch memory, at most.

    None when the NPU model cannot read them, which need not concern who runs the program elsewhere.
    """
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import config, extent

    most = 0
    for vela in (row.vela for plan in plans for row in plan.delegates if row.vela is not None):
        try:
            npu = config.NpuConfig.from_word(vela.config_word)
            written = extent.written_bytes(bytes(vela.command_stream), npu)
        except SdkError:
            return None
        most = max(most, written.get(vela_blocks.REGION_FAST_SCRATCH, 0))
    return most
