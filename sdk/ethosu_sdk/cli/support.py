"""The commands about the installation, and about errors and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import Application, app
from ethosu_sdk.cli.options import Data, Invocation, Loose, VelaConfig
from ethosu_sdk.compile.program_options import Option
from ethosu_sdk.installation.options import LAYOUT_CHOICES, InstallOptions


@app.command("doctor")
def doctor_command(invocation: Invocation) -> None:
    """Try every tool that the SDK uses; show which are missing, too old or broken, and how to fix that."""
    from ethosu_sdk.installation import doctor_command

    doctor_command.doctor(invocation.reporter())


@app.command("verify")
def verify_command(
    record: Annotated[Path, Option("A build.json or run.json to reproduce.", metavar="RECORD.json")],
    *,
    model: Annotated[
        Path | None,
        Option(
            "The program that the record describes.", metavar="MODEL.pte", shown_default="beside the record"
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        Option(
            "The inputs of the run.", metavar="F.npz", shown_default="those that `run` uses without --inputs"
        ),
    ] = None,
    data: Data = None,
    vela_config: VelaConfig = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Rebuild the firmware of a record from scratch, run it again, and compare digests, outputs, figures and
    versions."""
    from ethosu_sdk.analysis import verify_command
    from ethosu_sdk.records.bundle import ReadPolicy

    verify_command.verify(
        record, model, inputs, data or (), vela_config, ReadPolicy(loose), invocation.reporter()
    )


@app.command("sbom")
def sbom_command(
    *,
    output: Annotated[
        Path | None, Option("Write to this file.", short="-o", metavar="FILE.json", shown_default="stdout")
    ] = None,
    invocation: Invocation,
) -> None:
    """List the installed Python and Debian packages as a CycloneDX 1.6 bill of materials."""
    from ethosu_sdk.installation import sbom_command

    sbom_command.sbom(output, invocation.reporter())


fvp_app = Application(help="Install Arm's FVPs, or launchers that replace them.", no_args_is_help=True)
app.add_typer(fvp_app, name="fvp")


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
    from ethosu_sdk.installation import install_fvp

    install_fvp.install_launchers(folder, invocation.reporter(), force=force, layout=layout)


@fvp_app.command("install")
def install_command(options: InstallOptions, invocation: Invocation) -> None:
    """Install Arm's FVP from an archive that you have downloaded. The archive's digest is checked.

    Nothing is unpacked before you accept Arm's licence.
    """
    from ethosu_sdk.installation import install_fvp

    install_fvp.install_fvp(options, invocation.reporter())


@app.command("parse-log")
def parse_log_command(
    log: Annotated[Path, Option("The UART log of a run, or - for stdin.", metavar="FILE")],
    invocation: Invocation,
) -> None:
    """Read the log of a firmware: the SDK's own, ExecuTorch's executor_runner, or Arm's evaluation kit.

    The exit code is 7 if the log reports a failure, or ends before the run does.
    """
    from ethosu_sdk.reporting import parse_log_command

    parse_log_command.parse_log(log, invocation.reporter())


@app.command("explain")
def explain_command(
    words: Annotated[
        list[str] | None,
        Option(
            "The error's id, code or text. Without it, all known errors are listed.", metavar="[ID|CODE|TEXT]"
        ),
    ] = None,
    *,
    markdown: Annotated[bool, Option("Print all known errors as Markdown.")] = False,
    invocation: Invocation,
) -> None:
    """Explain an error, given its id, an ExecuTorch code such as 0x21, or a line of a log."""
    from ethosu_sdk.reporting import explain_command

    explain_command.explain(" ".join(words or ()), invocation.reporter(), markdown=markdown)
