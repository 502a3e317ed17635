"""The commands that read records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Invocation, Loose, OutDir
from ethosu_sdk.compile.program_options import FOR_A_TARGET, CompileOptions, Offer, Option
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.run.options import RunOptions


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
    options: Annotated[CompareOptions, Offer(only=("check", "policy", "allow", "across", "loose"))],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET, before="loose")],
    *,
    vela: Annotated[
        str | None,
        Option(
            "Compile MODEL with each of these versions of Vela and compare the results with those of the "
            "first. Versions that are not cached are installed from the package index.",
            metavar="V,V…",
        ),
        Offer(before="check"),
    ] = None,
    output: Annotated[OutDir, Offer(before="loose")] = None,
    invocation: Invocation,
) -> None:
    """Compare runs: which is faster, which operators went and came, and what memory, quality and outputs became.

    With --check or --policy, the exit code is 7 if a figure is worse than the policy tolerates, and 3 if runs differ
    in settings, simulator or versions that are not allowed to differ. The record goes to build/compare. A model
    FILE.py is executed.
    """
    from ethosu_sdk.analysis import program_facts
    from ethosu_sdk.reporting.compare import compare_command

    reporter = invocation.reporter()
    if vela is None:
        if compile_options != CompileOptions():
            raise UsageError("options of `compile` need --vela: without it, nothing is compiled")
        paths = [Path(path) for path in runs]
        compare_command.compare_runs(paths, program_facts.missing_profiles(paths), options, output, reporter)
        return
    if options.loose:
        raise UsageError("--loose cannot be used with --vela, which reads no existing records")
    from ethosu_sdk.sweep import vela_comparison

    options = replace(options, allow=(*vela_comparison.ALLOWED_DIFFERENCES, *options.allow))
    compare_command.read_policy(options)  # before anything is compiled
    folder = compare_command.comparison_folder(output)
    made = vela_comparison.runs_by_version(runs, vela, compile_options, folder, reporter)
    found = program_facts.missing_profiles(made.folders)
    compare_command.compare_runs(made.folders, found, options, folder, reporter, made.failed)


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
    number: Annotated[int | None, Option("Show all that is known of this change.", metavar="NUMBER")] = None,
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
    """Suggest changes that save time, use the CPU less or lose less accuracy, the best first.

    With a NUMBER, the change has the figures behind it, its command line or lines of code, the gain and how it was
    computed, and its limits. A MODEL is profiled first. From the folder of a run, the profile and the record of
    `debug` are used. A model FILE.py is executed.
    """
    from ethosu_sdk.analysis import change_trials, program_facts
    from ethosu_sdk.program import pte
    from ethosu_sdk.reporting.advise import advise_command

    wanted = advise_command.kinds_of_changes(try_only)
    try_ = try_ or try_only is not None
    reporter = invocation.reporter()
    if number is not None and not try_ and advise_command.show_stored(Path(subject), number, reporter):
        return
    done = change_trials.profiled_program(
        subject, compile_options, run_options, output, reporter.for_step(), too_large=try_
    )
    facts = program_facts.facts_of_program(pte.read(done.pte), done.content, compile_options.vela_config)
    inputs = advise_command.AdviceInputs(done.folder, done.run_folder, done.pte, done.content, facts)
    tries = None
    if try_:
        about = change_trials.subject_of(done, subject, compile_options, run_options)
        tries = change_trials.tried_changes(
            about, advise_command.wanted_candidates(inputs, wanted), done.folder, reporter
        )
    advise_command.advise(inputs, reporter, tries, number)


@app.command("validate")
def validate_command(
    record: Annotated[Path, Option("A record, or a folder of results.", metavar="FILE.json|DIR")],
    *,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Check a record against its schema and further rules, or a folder of results against its manifest.

    The folder must hold exactly the files that its manifest lists, unchanged and complete.
    """
    from ethosu_sdk.records.bundle import ReadPolicy
    from ethosu_sdk.reporting import validate_command

    validate_command.validate(record, ReadPolicy(loose), invocation.reporter())


@app.command("summary")
def summary_command(
    record: Annotated[
        list[Path],
        Option(
            "Records of compile, build, run, generate, profile, compare, verify or doctor, or an error with --json.",
            metavar="RECORD.json…",
        ),
    ],
    *,
    form: Annotated[str, Option("The output format.", name="--format", metavar="markdown")] = "markdown",
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Print a summary of records as Markdown, for example for the summary of a CI job."""
    from ethosu_sdk.records.bundle import ReadPolicy
    from ethosu_sdk.reporting import summary_command

    summary_command.summary(record, form, ReadPolicy(loose), invocation.reporter())
