"""Cycles and traffic of a command stream: a model of the NPU's pipeline, priced from descriptors alone.

docs/reference/fidelity.md compares it with published runs, and says how far it can be believed. What computes outputs
does not import it.
"""

from ethosu_sdk.npu.timing.costs import OperationTrace, costs
from ethosu_sdk.npu.timing.price import Priced, band, error, price, started
from ethosu_sdk.npu.timing.profile import Bound, OperationProfile, StreamProfile, profile
from ethosu_sdk.npu.timing.stalls import Stalls
from ethosu_sdk.npu.timing.traffic import Transfer

__all__ = [
    "Bound",
    "OperationProfile",
    "OperationTrace",
    "Priced",
    "Stalls",
    "StreamProfile",
    "Transfer",
    "band",
    "costs",
    "error",
    "price",
    "profile",
    "started",
]
