"""The command line of `compare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.errors import UsageError
from ethosu_sdk.program_options import Option
from ethosu_sdk.readers.compare.options import CompareOptions
from ethosu_sdk.steps.compile.options import FOR_A_TARGET, CompileOptions


@app.command("compare")
def compare_command(
    runs: Annotated[
        list[str],
        Option(
            "Folders of runs, or records of run, profile, build or compile. The others are compared with "
            "A. With --vela, one model as `compile` takes it, or its MODEL.pte.",
            metavar="A B…|MODEL",
            completion="models",
        ),
    ],
    options: Annotated[CompareOptions, Offer(only=("policy", "allow", "rows", "loose"))],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET, before="loose")],
    *,
    vela: Annotated[
        str | None,
        Option(
            "Compile MODEL with each of these versions of Vela and compare the results with those of the "
            "first. Versions that are not cached are installed from the package index.",
            metavar="V,V…",
        ),
        Offer(before="rows"),
    ] = None,
    output: Annotated[OutDir, Offer(before="loose")] = None,
    invocation: Invocation,
) -> None:
    """Compare runs figure by figure, and show what became worse and at which operator.

    Runs that differ in model, settings, simulator or versions are refused with exit code 3, unless the difference is
    allowed. The exit code is 7 if a figure is worse than the policy tolerates. The record goes to build/compare. A
    model FILE.py is executed.
    """
    from ethosu_sdk.readers.compare import compare_command
    from ethosu_sdk.steps.run_facts import profiles

    reporter = invocation.reporter()
    if vela is None:
        if compile_options != CompileOptions():
            raise UsageError("options of `compile` need --vela: without it, nothing is compiled")
        paths = [Path(path) for path in runs]
        compare_command.compare(paths, profiles.missing(paths), options, output, reporter)
        return
    if options.loose:
        raise UsageError("--loose cannot be used with --vela, which reads no existing records")
    from ethosu_sdk.steps import vela_versions

    options = replace(options, allow=(*vela_versions.ALLOWED, *options.allow))
    compare_command.read_policy(options)  # before anything is compiled
    folder = compare_command.folder_of(output)
    made = vela_versions.make(runs, vela, compile_options, folder, reporter)
    found = profiles.missing(made.folders)
    compare_command.compare(made.folders, found, options, folder, reporter, made.failed)
