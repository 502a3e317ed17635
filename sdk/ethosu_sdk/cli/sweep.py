"""`sweep` as a command and as a group: ``sweep SWEEP.toml`` is ``sweep run SWEEP.toml``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

from typer.core import TyperGroup

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.cli.app import Application, app
from ethosu_sdk.cli.options import Invocation, OutDir
from ethosu_sdk.compile.program_options import Offer, Option
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.sweep.options import SweepOptions

RUN = "run"
_HELP = ("-h", "--help")


class _Group(TyperGroup):
    """A group that passes words that are not its commands to RUN."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            _refuse_word(args[0], [*self.commands])
            args = [RUN, *args]
        return super().parse_args(ctx, args)


def _refuse_word(word: str, commands: list[str]) -> None:
    """Raise UsageError for a plain word that is not a file, such as a mistyped command."""
    if re.fullmatch(r"\w[\w-]*", word) and not os.path.lexists(word):
        message = f"there is neither a file nor a command of `sweep` called '{word}'"
        raise UsageError(message, f"{suggestion(word, commands)}; or give the file of a sweep, SWEEP.toml")


sweep_app = Application(
    cls=_Group,
    help="Run many models with many targets, modes, compilers and simulators; query and compare the "
    "results.\n\nethosu-sdk sweep SWEEP.toml is short for ethosu-sdk sweep run SWEEP.toml.",
    no_args_is_help=True,
)
app.add_typer(sweep_app, name="sweep")


@sweep_app.command(RUN)
def sweep_command(
    file: Annotated[
        Path,
        Option(
            "The description of the sweep: models, targets, modes, limits and goals.", metavar="SWEEP.toml"
        ),
    ],
    options: SweepOptions,
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compile and run every cell of SWEEP.toml that is not done yet, and collect the results in one folder.

    Steps that cells share are done once. A cell that fails is a row of the table and does not stop the sweep; the
    exit code is then 7. After an interruption, the same command continues. Results go to build/sweep/NAME. Model
    files FILE.py are executed.
    """
    from ethosu_sdk.analysis import program_facts
    from ethosu_sdk.base.terminal import Reporter
    from ethosu_sdk.reporting.pages import report_command
    from ethosu_sdk.sweep import sweep_command

    def report(run: Path) -> None:
        facts = [program_facts.facts_of_run(run)]
        report_command.report([run], facts, (), None, Reporter(quiet=True))

    sweep_command.sweep(file, options, output, invocation.reporter(), report)


@sweep_app.command("query")
def query_command(
    sql: Annotated[str, Option("One SELECT statement on the table `cells`.", metavar="SQL")],
    folder: Annotated[
        Path | None,
        Option("The folder of a sweep.", metavar="DIR", shown_default="the only one below build/sweep"),
    ] = None,
    *,
    csv: Annotated[bool, Option("Print CSV on stdout.")] = False,
    invocation: Invocation,
) -> None:
    """Query the table of a sweep's cells in SQL, with DuckDB. The query can read only that table.

    For example: "SELECT target, min(time_ms) FROM cells WHERE status = 'pass' GROUP BY target ORDER BY 2"
    """
    from ethosu_sdk.base.errors import UsageError
    from ethosu_sdk.sweep import cell_query

    if csv and invocation.json:
        raise UsageError("--csv and --json both write to stdout", "leave one of them out")
    cell_query.query_cells(sql, folder, csv, invocation.reporter())


@sweep_app.command("compare")
def compare_command(
    before: Annotated[Path, Option("The folder of a sweep.", metavar="A")],
    after: Annotated[Path, Option("The folder of the sweep to compare with A.", metavar="B")],
    options: Annotated[CompareOptions, Offer(only=("policy", "allow"))],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compare two sweeps cell by cell, with the policy and the exit codes of `compare`.

    The exit code is also 7 if a cell that passed in A fails or is missing in B.
    """
    from ethosu_sdk.sweep import sweep_comparison

    sweep_comparison.compare_sweeps(before, after, options, output, invocation.reporter())
