"""Command lines: option dataclasses, the values that a command gets, usage errors, and how a command speaks."""

import inspect
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from typer.testing import CliRunner

from ethosu_sdk.analysis.options import DebugOptions, ProfileOptions
from ethosu_sdk.cli.app import Application
from ethosu_sdk.cli.options import Invocation
from ethosu_sdk.cli.parameters import Expanded
from ethosu_sdk.compile.program_options import (
    AccuracyOptions,
    CompileOptions,
    Offer,
    Option,
    ProgramOptions,
    argument,
    option,
    option_fields,
    option_of,
)
from ethosu_sdk.installation.options import InstallOptions
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.sweep.options import SweepOptions
from tests.tables import each

ALL = (
    *(AccuracyOptions, CompareOptions, CompileOptions, DebugOptions, InstallOptions),
    *(ProfileOptions, ProgramOptions, RunOptions, SweepOptions),
)


@dataclass(frozen=True, kw_only=True)
class Oven:
    heat_c: float = option(180.0, Option("How hot.", name="--heat", minimum=0, finite=True))
    racks: tuple[int, ...] = option((), Option("Which racks.", metavar="N"))
    light: bool = option(True, Option("Bake in the dark.", name="--no-light"))
    fan: bool = option(False, Option("Blow.", short="-f"))
    secret: int = 7


@dataclass(frozen=True, kw_only=True)
class Dough:
    flour: str = option("wheat", Option("Its flour.", choices=("wheat", "rye")))
    rest_s: float | None = option(None, Option("How long it rests.", name="--rest"))


@dataclass(frozen=True)
class Named:
    name: str = field(metadata=argument(Option("What it is called.")))
    loud: bool = option(False, Option("Say it."))


def bake(*line: str, command: Any) -> tuple[int, str, list[Any]]:
    """Exit code, output and what `command` recorded of a command `line`."""
    calls: list[Any] = []
    app = Application()
    app.command("bake")(command(calls))
    result = CliRunner().invoke(app, list(line))
    return result.exit_code, result.output, calls


def loaf(calls: list[Any]) -> Any:
    def command(
        file: Annotated[Path, Option("The recipe.", metavar="FILE")],
        oven: Annotated[Oven, Offer(without=("fan",))],
        dough: Annotated[Dough, Offer(before="racks")],
        *,
        output: Annotated[
            Path | None, Option("Where.", short="-o", metavar="DIR"), Offer(before="light")
        ] = None,
    ) -> None:
        calls.append((file, oven, dough, output))

    return command


def test_options_fill_the_dataclasses_which_have_defaults() -> None:
    code, _, calls = bake("rye.txt", command=loaf)
    assert (code, calls) == (0, [(Path("rye.txt"), Oven(), Dough(), None)])
    line = ("--heat", "230", "--racks", "2", "--racks", "3", "--no-light", "--flour", "rye", "--rest", "60")
    code, _, calls = bake("rye.txt", *line, "-o", "out", command=loaf)
    oven = Oven(heat_c=230.0, racks=(2, 3), light=False)
    assert (code, calls) == (0, [(Path("rye.txt"), oven, Dough(flour="rye", rest_s=60.0), Path("out"))])


def test_options_are_listed_in_order_and_unknown_rows_refused() -> None:
    names = [*inspect.signature(Expanded(loaf([]))).parameters]
    assert names == ["file", "heat_c", "flour", "rest_s", "racks", "output", "no_light"]

    def command(oven: Annotated[Oven, Offer(only=("heat",))]) -> None: ...

    with pytest.raises(AssertionError, match="Oven lacks a row"):
        inspect.signature(Expanded(command))


@each(
    ("line", "said"),
    [
        (["rye.txt", "--secret", "8"], "No such option"),  # a field that is no row
        (["rye.txt", "--fan"], "No such option"),  # a row that the command leaves out
        (["rye.txt", "--heat", "-1"], "--heat"),
        (["rye.txt", "--heat", "inf"], "finite"),
        (["rye.txt", "--racks", "two"], "--racks"),
        ([], "FILE"),
    ],
)
def test_a_wrong_line_is_a_usage_error(line: list[str], said: str) -> None:
    code, output, calls = bake(*line, command=loaf)
    assert (code, calls) == (2, [])
    assert said in output


def test_a_field_without_a_default_is_an_argument() -> None:
    def named(calls: list[Any]) -> Any:
        def command(options: Named) -> None:
            calls.append(options)

        return command

    assert bake("Ada", "--loud", command=named)[2] == [Named("Ada", True)]


@each("options", ALL)
def test_every_row_can_be_offered(options: type) -> None:
    """Its type is there at run time, its default is among its choices, and its text is a sentence."""
    assert option_fields(options)
    for name, found in option_fields(options).items():
        row = option_of(found)
        assert not isinstance(found.type, str), name
        assert row.help[0].isupper() or row.help.startswith(("input0", "output0")), name
        assert row.help.endswith((".", ")", "…")), name
        assert not row.choices or found.default in (None, MISSING, *row.choices), name


# --- How a command speaks, and how the entry point knows before the line is parsed.


def test_an_invocation_says_how_a_command_speaks() -> None:
    reporter = Invocation(json=True, quiet=True).reporter()
    assert (reporter.as_json, reporter.quiet) == (True, True)
    assert Invocation.of_line(["run", "x.pte", "--json", "--wrong"]) == Invocation(json=True)
    assert Invocation.of_line(["--debug"]) == Invocation(debug=True)
    assert Invocation.of_line(["run", "json", "debug"]) == Invocation()
