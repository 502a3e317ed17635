"""The cells of a plan on Dask, which schedules, transports and tries again; what is done is in
:mod:`ethosu_sdk.sweep.work`."""

from ethosu_sdk.sweep.engine.cluster import warning
from ethosu_sdk.sweep.engine.futures import Watch, run

__all__ = ["Watch", "run", "warning"]
