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
    folder: Annotated[Path, Option("The folder for the launchers.", metavar="DIR")],
    *,
    force: Annotated[bool, Option("Replace files of the same names that are not launchers.")] = False,
    layout: Annotated[
        str,
        Option(
            "Put the launchers into DIR itself (flat) or into the folders that Arm's installer makes (fvp).",
            choices=LAYOUT_CHOICES,
        ),
    ] = LAYOUT_CHOICES[0],
    invocation: Invocation,
) -> None:
    """Install launchers into DIR: programs with the FVPs' names that run firmware on QEMU and the NPU model.

    They accept the FVPs' own parameters, so that scripts for FVPs work without Arm's licence. They are not Arm's FVP.
    """
    from ethosu_sdk.installation.fvp import launchers

    launchers.install(folder, invocation.reporter(), force=force, layout=layout)
