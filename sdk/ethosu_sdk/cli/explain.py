"""The command line of `explain`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


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
    from ethosu_sdk.readers import explain_command

    explain_command.explain(" ".join(words or ()), invocation.reporter(), markdown=markdown)
