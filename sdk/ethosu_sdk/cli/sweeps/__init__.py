"""The command lines of `sweep`."""

from ethosu_sdk.cli.sweeps import (  # noqa: F401, I001 - their order is the help's
    sweep,
    query,
    compare,
)
