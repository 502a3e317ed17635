"""`ethosu-sdk report`: one HTML file about runs, with everything in it that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import bundle, result_files
from ethosu_sdk.records.run_facts import RunFacts
from ethosu_sdk.reporting.pages import drawing, report_inputs

FILE_NAME = "report.html"


def check_output(output: Path | None) -> None:
    """UsageError for an `output` that is no HTML file, ToolError when nothing can be drawn here."""
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {output}: the report is an HTML file", "give a name that ends in .html")
    drawing.require_drawing()


def report(
    folders: Sequence[Path],
    facts: Sequence[RunFacts],
    advice: Sequence[Path],
    output: Path | None,
    reporter: Reporter,
) -> Path:
    """Write the report of the runs in `folders` with the facts of each, and records of `advise` beside those in the
    folders; the file that was written."""
    check_output(output)
    from ethosu_sdk.reporting.pages import run_page

    with reporter.stage("reading the runs"):
        all_inputs = report_inputs.read_runs(folders, facts, advice)
    with reporter.stage("drawing"):
        try:
            content = run_page.render_runs(all_inputs).encode()
        except OverflowError as error:  # JSON has numbers without end, floats do not
            hint = "make the run again; `ethosu-sdk validate RUN_DIR` names records that were changed"
            raise InputError("a number in a record of the run is too large to be drawn", hint) from error
    # Beside the records of the one run; the report of several belongs to none of them.
    path = output or (folders[0] if len(folders) == 1 else Path(result_files.BUILD_FOLDER)) / FILE_NAME
    filesystem.make_directory(path.parent)
    with bundle.listed(path, "report"):
        filesystem.write_bytes(path, content)
    reporter.show(f"report of {counted(len(all_inputs), 'run')}: {escape(path)} ({len(content):,} bytes)")
    return path
