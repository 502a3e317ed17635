"""The options that every command has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ethosu_sdk.program_options import Option, option

if TYPE_CHECKING:
    from ethosu_sdk.console.reporter import Reporter


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What a command prints, and in which form."""

    json: bool = option(
        False, Option("Print only the JSON record on stdout; everything else goes to stderr.")
    )
    quiet: bool = option(False, Option("Print warnings and errors only.", short="-q"))
    debug: bool = option(False, Option("Show the traceback of an error."))

    @classmethod
    def of_line(cls, words: Sequence[str]) -> "Invocation":
        """As the unparsed `words` of a command line say: for errors, which may come before they are parsed."""
        return cls(json="--json" in words, debug="--debug" in words)

    def reporter(self) -> "Reporter":
        """Where the command's progress and results go."""
        from ethosu_sdk.console.reporter import Reporter

        return Reporter(as_json=self.json, quiet=self.quiet)
