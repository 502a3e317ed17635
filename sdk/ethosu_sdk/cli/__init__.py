"""The command line: one module a command, in the order in which --help lists them.

The only part that prints errors or ends the process. A module imports what its command needs inside the function:
--help must not wait for NumPy.
"""

from ethosu_sdk.cli import (  # noqa: F401, I001 - their order is the help's
    zoo,
    boards,
    compile,
    build,
    run,
    generate,
    inspect,
    profile,
    report,
    debug,
    compare,
    advise,
    validate,
    summary,
    sweep,
    sweep_run,
    sweep_query,
    sweep_compare,
    convert,
    export,
    doctor,
    verify,
    sbom,
    fvp,
    fvp_install_launchers,
    fvp_install,
    parse_log,
    explain,
)
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.entry import main

__all__ = ["app", "main"]
