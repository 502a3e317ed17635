"""`ethosu-sdk convert`: write records in the format that the user chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import bundle, kinds, provenance, validation
from ethosu_sdk.records.bundle import ReadPolicy
from ethosu_sdk.reporting.convert import executorch_formats, junit, operation_formats, perfetto, sarif
from ethosu_sdk.reporting.convert.conversion_inputs import FIGURES, ConversionInputs, Nodes, read_inputs


@dataclass(frozen=True)
class Format:
    """A format: the records it is made from, its converter, the facts it has no place for, the usual name of such a
    file, and how `{file}` is opened."""

    kinds: tuple[str, ...]
    convert: Callable[[ConversionInputs], bytes]
    left_out: tuple[str, ...]
    file: str
    way: str


_NODE_DATA = "model-explorer"
FORMATS = {
    "junit": Format(
        junit.KINDS,
        junit.to_junit,
        junit.LEFT_OUT,
        "junit.xml",
        "Jenkins, GitLab and Azure Pipelines read it as results of tests",
    ),
    "sarif": Format(
        sarif.KINDS,
        sarif.to_sarif,
        sarif.LEFT_OUT,
        "findings.sarif",
        "Visual Studio Code opens it with the extension SARIF Viewer, and GitHub's code scanning takes it",
    ),
    "perfetto": Format(
        perfetto.KINDS,
        perfetto.to_perfetto,
        perfetto.LEFT_OUT,
        "trace.perfetto-trace",
        "open it at https://ui.perfetto.dev",
    ),
    "parquet": Format(
        operation_formats.ROWS_KINDS,
        operation_formats.to_parquet,
        operation_formats.ROWS_LEFT_OUT,
        "operations.parquet",
        'pandas.read_parquet("{file}"), or DuckDB or Polars',
    ),
    _NODE_DATA: Format(
        operation_formats.NODES_KINDS,
        operation_formats.to_model_explorer,
        operation_formats.NODES_LEFT_OUT,
        "nodes.json",
        "model-explorer {folder}/delegate{delegate}.tosa --extensions=tosa_adapter_model_explorer "
        "--node_data_paths={file}",
    ),
    "etdump": Format(
        executorch_formats.ETDUMP_KINDS,
        executorch_formats.to_etdump,
        executorch_formats.ETDUMP_LEFT_OUT,
        "run.etdp",
        'Inspector(etdump_path="{file}", …) of executorch.devtools reads it',
    ),
    "bpte": Format(
        executorch_formats.BUNDLED_KINDS,
        executorch_formats.to_bundled_program,
        executorch_formats.BUNDLED_LEFT_OUT,
        "program.bpte",
        "ExecuTorch's executor_runner runs it, if it is built with bundled programs",
    ),
}


def convert(
    path: Path,
    name: str,
    output: Path | None,
    reading: ReadPolicy,
    reporter: Reporter,
    nodes: Nodes | None = None,
) -> None:
    """Write the records at `path` to `output`, by default the format's usual name in their folder, in the format
    `name`; `nodes` chooses what Model Explorer shows.

    Raises UsageError for an unknown format, InputError for what is no record that it can be made from, ToolError when
    a package is missing that writes it.
    """
    if name not in FORMATS:
        raise UsageError(f"unknown format '{name}'", suggestion(name, FORMATS))
    if nodes is not None and name != _NODE_DATA:
        raise UsageError(f"--figure and --delegate belong to --to {_NODE_DATA}", "leave them out")
    if nodes is not None and nodes.figure not in FIGURES:
        raise UsageError(f"unknown figure '{nodes.figure}'", suggestion(nodes.figure, FIGURES))
    chosen = FORMATS[name]
    inputs = replace(read_inputs(path, chosen.kinds, reading), nodes=nodes or Nodes())
    folder = path if path.is_dir() else path.parent
    output = output or folder / chosen.file
    if output.resolve() in (file.resolve() for file in inputs.files.values()):
        raise UsageError(f"{output} is a record that is being converted", "choose another file with -o")
    try:
        content = chosen.convert(inputs)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError(f"a number in {path} is too large to be converted") from error
    given = inputs.files.items()
    files = [{**provenance.file_entry(kind, file), **reading.mark(file)} for kind, file in given]
    record = {
        **provenance.header(kinds.CONVERSION.schema, "pass", files, []),
        "format": name,
        "file": {"name": output.name, "sha256": filesystem.sha256_bytes(content), "bytes": len(content)},
        "left_out": list(chosen.left_out),
        "host": provenance.host_part(),
    }
    validation.check_record(record, "the record of the conversion")
    with bundle.listed(output, "convert"):
        filesystem.write_bytes(output, content)
    reading.warn(reporter)
    reporter.show(f"{escape(str(output))}: {name}, {len(content):,} bytes, from {', '.join(inputs.records)}")
    reporter.show(escape(chosen.way.format(file=output, folder=folder, delegate=inputs.nodes.delegate)))
    for text in chosen.left_out:
        reporter.note(f"left out: {text}")
    reporter.emit(record)
