"""The command line of `fvp`: Arm's FVPs, and the SDK's launchers that take their place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import Application, app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.installation.fvp.options import LAYOUT_CHOICES, InstallOptions
from ethosu_sdk.program_options import Option

fvp_app = Application(help="Arm's FVPs, and launchers that take their place.", no_args_is_help=True)
app.add_typer(fvp_app, name="fvp")


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


@fvp_app.command("install")
def install_command(
    options: InstallOptions,
    invocation: Invocation,
) -> None:
    """Install Arm's FVP from an archive that you have: checked by digest, and only once you accept Arm's licence."""
    from ethosu_sdk.installation.fvp import install as command

    command.install(options, invocation.reporter())
