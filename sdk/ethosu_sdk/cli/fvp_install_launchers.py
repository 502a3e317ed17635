"""The command line of `fvp install-launchers`: programs that take the place of Arm's FVPs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.fvp import fvp_app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.installation.fvp.options import LAYOUT_CHOICES
from ethosu_sdk.program_options import Option


@fvp_app.command("install-launchers")
def install_launchers_command(
    folder: Annotated[Path, Option("Where they go.", metavar="DIR")],
    *,
    force: Annotated[bool, Option("Replace programs of the same names that are no launchers.")] = False,
    layout: Annotated[
        str,
        Option(
            "The programs in DIR itself, or in DIR's folders as Arm's installer makes them for an FVP.",
            choices=LAYOUT_CHOICES,
        ),
    ] = LAYOUT_CHOICES[0],
    invocation: Invocation,
) -> None:
    """Put programs with the FVPs' names into DIR that run the firmware on QEMU and the NPU model.

    They take the FVPs' own parameters, so that scripts for them work without Arm's licence. They are not Arm's FVP.
    """
    from ethosu_sdk.installation.fvp import launchers as command

    command.install(folder, invocation.reporter(), force=force, layout=layout)
