"""Cycles and traffic of a command stream: a model of the NPU's pipeline, priced from descriptors alone.

docs/reference/fidelity.md compares it with published runs, and says how far it can be believed. What computes outputs
does not import it.
"""

from ethosu_sdk.npu.timing.pipeline import Stalls
from ethosu_sdk.npu.timing.price import Priced, band, costs, error, price, profile, started

__all__ = ["Priced", "Stalls", "band", "costs", "error", "price", "profile", "started"]
