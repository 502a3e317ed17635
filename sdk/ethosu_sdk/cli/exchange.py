"""The commands that write what other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Invocation, Loose, OutDir, Pte
from ethosu_sdk.compile.program_options import Option

FORMATS = ("junit", "sarif", "perfetto", "parquet", "model-explorer", "etdump", "bpte")
SYSTEMS = ("zephyr", "cmsis")
FIGURES = ("modelled", "estimated", "measured", "macs")


@app.command("convert")
def convert_command(
    subject: Annotated[
        Path,
        Option(
            "One record, or a folder of results: all of its records that fit the format are used.",
            metavar="RUN_DIR|RECORD.json",
        ),
    ],
    *,
    to: Annotated[str, Option("The output format.", choices=FORMATS)],
    output: Annotated[
        Path | None,
        Option(
            "Write to this file.",
            short="-o",
            metavar="FILE",
            shown_default="junit.xml, trace.perfetto-trace …, beside the records",
        ),
    ] = None,
    figure: Annotated[
        str | None,
        Option(
            "For model-explorer: cycles by their source, or MACs; without it the modelled cycles.",
            choices=FIGURES,
        ),
    ] = None,
    delegate: Annotated[
        int | None, Option("For model-explorer: the delegate; without it the first, 0.", minimum=0)
    ] = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Write records in a format that other tools open: CI servers, code hosts, trace viewers, data tools.

    Facts that the format cannot hold are left out, and the output names them.
    """
    from ethosu_sdk.records.bundle import ReadPolicy
    from ethosu_sdk.reporting.convert import convert_command
    from ethosu_sdk.reporting.convert.conversion_inputs import Nodes

    nodes = None
    if figure is not None or delegate is not None:
        nodes = Nodes(figure or Nodes.figure, delegate or Nodes.delegate)
    convert_command.convert(subject, to, output, ReadPolicy(loose), invocation.reporter(), nodes)


@app.command("export")
def export_command(
    model: Pte,
    *,
    run: Annotated[
        Path | None,
        Option(
            "A run of this program, for sizes that are known only after a run; preferably one with "
            "--runtime executorch.",
            metavar="RUN_DIR",
        ),
    ] = None,
    app: Annotated[
        str | None,
        Option(
            "Also write a complete application, for Zephyr or as a CMSIS solution. It runs on this machine first, "
            "which gives the sizes of its pools.",
            choices=SYSTEMS,
        ),
    ] = None,
    output: OutDir = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Write the settings that other builds need to run MODEL.pte: pool sizes, kernels and the NPU's settings.

    CMake definitions for ExecuTorch's arm_executor_runner, a Kconfig fragment for Zephyr, a layer for CMSIS-Toolbox.
    Only known values are defined; a bound that is not sufficient by itself is written as a comment.
    """
    from ethosu_sdk.analysis import export_command
    from ethosu_sdk.records.bundle import ReadPolicy

    export_command.export(model, run, output, ReadPolicy(loose), invocation.reporter(), app)
