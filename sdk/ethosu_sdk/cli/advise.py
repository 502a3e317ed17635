"""The command line of `advise`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.program_options import Option
from ethosu_sdk.steps.compile.options import FOR_A_TARGET, CompileOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("advise")
def advise_command(
    subject: Annotated[
        str,
        Option(
            "The folder of a run that contains its program, or a model as `profile` takes it.",
            metavar="RUN_DIR|MODEL",
            completion="models",
        ),
    ],
    run_options: Annotated[RunOptions, Offer(only=("inputs", "timeout_s", "board", "allow_spill"))],
    compile_options: Annotated[CompileOptions, Offer(only=(*FOR_A_TARGET, "vela_config"), before="board")],
    *,
    try_: Annotated[
        bool,
        Option(
            "Compile and run the program again with each change, and with the best ones together, and show the gain "
            "that each one got.",
            name="--try",
        ),
    ] = False,
    try_only: Annotated[
        str | None,
        Option(
            "Try changes of these kinds alone: program (options, layout), model (operators), precision, weights, "
            "target; implies --try.",
            name="--try-only",
            metavar="KIND,…",
        ),
    ] = None,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Suggest changes that save cycles, use the CPU less or lose less accuracy.

    Each suggestion has the figures behind it, a command line or lines of code, the expected gain and its computation,
    and its limits. A MODEL is profiled first. From the folder of a run, the profile and the record of `debug` are
    used. A model FILE.py is executed.
    """
    from ethosu_sdk.readers.advise import advise_command
    from ethosu_sdk.steps.run_facts import programs
    from ethosu_sdk.steps.trials import trying

    wanted = advise_command.kinds_of_changes(try_only)
    try_ = try_ or try_only is not None
    reporter = invocation.reporter()
    done = trying.profiled(subject, compile_options, run_options, output, reporter.for_step(), too_large=try_)
    facts = programs.read(done.pte, done.content, compile_options.vela_config)
    inputs = advise_command.Inputs(done.folder, done.run_folder, done.pte, done.content, facts)
    tries = None
    if try_:
        from ethosu_sdk.steps.trials import subject as trial_subject

        about = trial_subject.of(done, subject, compile_options, run_options)
        tries = trying.tried(about, advise_command.candidates(inputs, wanted), done.folder, reporter)
    advise_command.advise(inputs, reporter, tries)
