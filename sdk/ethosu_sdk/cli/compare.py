"""The command line of `compare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    Allow,
    Debug,
    Json,
    Loose,
    MemoryMode,
    OutDir,
    Policy,
    Quiet,
    SystemConfig,
    TargetName,
    Trust,
)
from ethosu_sdk.errors import UsageError
from ethosu_sdk.readers.compare.options import CompareOptions
from ethosu_sdk.steps.compile.options import CompileOptions


@app.command("compare")
def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="A B…|MODEL",
            show_default=False,
            help="Folders of runs, or records of run, profile, build or compile. A is what the others "
            "are compared with. With --vela, one model as `compile` takes it, or its MODEL.pte.",
            autocompletion=completion.models,
        ),
    ],
    policy: Policy = CompareOptions.policy,
    allow: Allow = None,
    vela: Annotated[
        str | None,
        typer.Option(
            metavar="V,V…",
            help="Compile MODEL with each of these versions of Vela and compare what comes of it with the first. "
            "Versions that are not in the cache are installed from the package index.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Show N of the operators that differ.", show_default="20"),
    ] = CompareOptions.rows,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    trust: Trust = CompileOptions.trust,
    output: OutDir = None,
    loose: Loose = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare runs figure by figure, and tell what became worse and at which operator.

    Runs of other models, settings, simulators or versions are not compared unless that is allowed (exit code 3); a
    figure that is worse than the policy tolerates ends with exit code 7. The record goes to build/compare. A model
    FILE.py is executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.readers.compare import compare_command
    from ethosu_sdk.steps.run_facts import profiles

    options = CompareOptions(policy=policy, allow=tuple(allow or ()), rows=rows, loose=loose)
    reporter = Reporter(as_json=json, quiet=quiet)
    compile_options = CompileOptions(
        target=target, system_config=system_config, memory_mode=memory_mode, trust=trust
    )
    if vela is None:
        if compile_options != CompileOptions():
            raise UsageError("options of `compile` go with --vela alone: runs are compared as they are")
        paths = [Path(path) for path in runs]
        compare_command.compare(paths, profiles.missing(paths), options, output, reporter)
        return
    if loose:
        raise UsageError("--loose is for records: --vela makes its own")
    from ethosu_sdk.steps import vela_versions

    options = replace(options, allow=(*vela_versions.ALLOWED, *options.allow))
    compare_command.read_policy(options)  # before anything is compiled
    folder = compare_command.folder_of(output)
    made = vela_versions.make(runs, vela, compile_options, folder, reporter)
    found = profiles.missing(made.folders)
    compare_command.compare(made.folders, found, options, folder, reporter, made.failed)
