"""The cells of a plan on Dask, which schedules, transports and tries again; what is done is in
:mod:`ethosu_sdk.commands.sweep.work`."""

from ethosu_sdk.commands.sweep.engine.cluster import warning
from ethosu_sdk.commands.sweep.engine.futures import Watch, run

__all__ = ["Watch", "run", "warning"]
