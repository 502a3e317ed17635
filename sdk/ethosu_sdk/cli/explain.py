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
        Option("Without one: all known errors.", metavar="[ID|CODE|TEXT]"),
    ] = None,
    *,
    markdown: Annotated[bool, Option("Print docs/guide/errors.md.")] = False,
    invocation: Invocation,
) -> None:
    """Explain an error: by its id, by a code of ExecuTorch's such as 0x21, or by the line that a log shows."""
    from ethosu_sdk.readers import explain_command

    explain_command.explain(" ".join(words or ()), invocation.reporter(), markdown=markdown)
