"""How a command speaks, and how the entry point knows before the line is parsed."""

from ethosu_sdk.cli.invocation import Invocation


def test_a_reporter_speaks_as_the_invocation_says() -> None:
    reporter = Invocation(json=True, quiet=True).reporter()
    assert (reporter.as_json, reporter.quiet) == (True, True)


def test_a_line_that_is_not_parsed_says_how_errors_are_shown() -> None:
    assert Invocation.of_line(["run", "x.pte", "--json", "--wrong"]) == Invocation(json=True)
    assert Invocation.of_line(["--debug"]) == Invocation(debug=True)
    assert Invocation.of_line(["run", "json", "debug"]) == Invocation()
