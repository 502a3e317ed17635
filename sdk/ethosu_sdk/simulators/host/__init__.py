"""ExecuTorch's own C++ runtime, from the executorch wheel, running a `.pte` on this machine.

It is the reference for the firmware's interpreter and its CPU operators, and the fastest way to many
inferences. Whoever calls it says what executes the Ethos-U delegates.
"""

from __future__ import annotations

from ethosu_sdk.simulators.host.build import CACHE_PART, build_runner
from ethosu_sdk.simulators.host.runtime import Delegate, DelegateCall, HostRuntime, open_pte, run_pte
from ethosu_sdk.simulators.host.wire import TensorInfo

__all__ = [
    "CACHE_PART",
    "Delegate",
    "DelegateCall",
    "HostRuntime",
    "TensorInfo",
    "build_runner",
    "open_pte",
    "run_pte",
]
