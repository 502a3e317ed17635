"""Cycles and traffic of a command stream: a model of the NPU's pipeline, priced from descriptors alone.

docs/reference/fidelity.md compares it with published runs, and says how far it can be believed. What computes
outputs
does not import it.
"""

from ethosu_sdk.npu.timing.pipeline import Stalls
from ethosu_sdk.npu.timing.price import (
    Bound,
    OperationProfile,
    OperationTrace,
    Priced,
    StreamProfile,
    band,
    costs,
    error,
    price,
    profile,
    started,
)
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
