"""The AXI bursts in which an operation's data are moved, by their length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.geometry import ceil_div
from ethosu_sdk.npu.timing.system_config import Memory
from ethosu_sdk.npu.timing.traffic import Transfer


def known(memory: Memory, config: NpuConfig) -> bool:
    """Whether the system configuration says how long a burst is. Without that key, Vela takes a byte."""
    return memory.burst_bytes >= config.beat_bytes


def bursts(moved: Iterable[Transfer], memory: Memory, config: NpuConfig) -> Counter[int]:
    """Beats of a burst → bursts, of what is moved to or from `memory`.

    Each piece that lies in one is cut into bursts of the system's length, and what is left of it is a shorter one.
    """
    longest = memory.burst_bytes // config.beat_bytes
    found: Counter[int] = Counter()
    for transfer in moved:
        piece = min(transfer.beats, ceil_div(transfer.run_bytes, config.beat_bytes)) or transfer.beats
        pieces, last = divmod(transfer.beats, piece)
        for beats, count in ((piece, pieces), (last, 1)):
            whole, rest = divmod(beats, longest)
            found[longest] += count * whole
            found[rest] += count
    del found[0]
    return +found
