"""The command line of `fvp install`."""

from __future__ import annotations

from ethosu_sdk.cli.fvp import fvp_app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.installation.fvp.options import InstallOptions


@fvp_app.command("install")
def install_command(
    options: InstallOptions,
    invocation: Invocation,
) -> None:
    """Install Arm's FVP from an archive that you have downloaded. The archive's digest is checked.

    Nothing is unpacked before you accept Arm's licence.
    """
    from ethosu_sdk.installation.fvp import install

    install.install(options, invocation.reporter())
