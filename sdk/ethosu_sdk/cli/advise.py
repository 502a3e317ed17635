"""The command line of `advise`."""

from __future__ import annotations

from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    AllowSpill,
    Board,
    Debug,
    Inputs,
    Json,
    MemoryMode,
    OutDir,
    Quiet,
    SystemConfig,
    TargetName,
    Timeout,
    Trust,
)
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("advise")
def advise_command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN_DIR|MODEL",
            show_default=False,
            help="The folder of a run that has its program in it, or what `profile` takes.",
            autocompletion=completion.models,
        ),
    ],
    inputs: Inputs = RunOptions.inputs,
    timeout: Timeout = RunOptions.timeout_s,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    trust: Trust = CompileOptions.trust,
    board: Board = RunOptions.board,
    allow_spill: AllowSpill = RunOptions.allow_spill,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what to change so that a program takes fewer cycles, less of the CPU or loses less accuracy.

    Each advice has the figures it rests on, a command line or lines of code, the gain that is expected and how it was
    computed, and where it does not hold. A MODEL is profiled first; of a run, its profile and what `debug` left in
    the folder are judged. A model FILE.py is executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.readers.advise import advise_command
    from ethosu_sdk.steps.profile import profile_command
    from ethosu_sdk.steps.run_facts import programs

    reporter = Reporter(as_json=json, quiet=quiet)
    done = profile_command.profile(
        subject,
        CompileOptions(target=target, system_config=system_config, memory_mode=memory_mode, trust=trust),
        RunOptions(inputs=inputs, timeout_s=timeout, board=board, allow_spill=allow_spill),
        ProfileOptions(),
        output,
        reporter.for_step(),
    )
    facts = programs.read(done.pte, done.record)
    advise_command.advise(
        advise_command.Inputs(done.folder, done.run_folder, done.pte, done.record, facts), reporter
    )
