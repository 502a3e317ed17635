"""The command line: one module for a group of commands, in the order in which --help lists them.

The only part that prints errors or ends the process. A module imports what its command needs inside the function:
--help must not wait for NumPy.
"""

from ethosu_sdk.cli import (  # noqa: F401, I001 - their order is the help's
    programs,
    analysis,
    records,
    sweep,
    exchange,
    support,
)
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.entry import main

__all__ = ["app", "main"]
