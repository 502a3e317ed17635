"""The command line of `explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation


@app.command("explain")
def explain_command(
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID|CODE|TEXT]", show_default=False, help="Without one: all known errors."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/guide/errors.md.")] = False,
    invocation: Invocation,
) -> None:
    """Explain an error: by its id, by a code of ExecuTorch's such as 0x21, or by the line that a log shows."""
    from ethosu_sdk.readers import explain_command

    explain_command.explain(" ".join(words or ()), invocation.reporter(), markdown=markdown)
