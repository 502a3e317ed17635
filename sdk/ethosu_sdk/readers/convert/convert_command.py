"""`ethosu-sdk convert`: write records in the format that the user chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk import provenance, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import hashing, writing
from ethosu_sdk.readers.convert import bundled_program, etdump, junit, model_explorer, perfetto, rows, sarif
from ethosu_sdk.readers.convert.inputs import FIGURES, Inputs, Nodes, read
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, host_facts
from ethosu_sdk.results.reading import Reading
from ethosu_sdk.targets import suggestion


@dataclass(frozen=True)
class Format:
    """A format: the records it is made from, its converter, and the facts it has no place for."""

    kinds: tuple[str, ...]
    convert: Callable[[Inputs], bytes]
    left_out: tuple[str, ...]


_NODE_DATA = "model-explorer"
FORMATS = {
    "junit": Format(junit.KINDS, junit.convert, junit.LEFT_OUT),
    "sarif": Format(sarif.KINDS, sarif.convert, sarif.LEFT_OUT),
    "perfetto": Format(perfetto.KINDS, perfetto.convert, perfetto.LEFT_OUT),
    "parquet": Format(rows.KINDS, rows.to_parquet, rows.LEFT_OUT),
    _NODE_DATA: Format(model_explorer.KINDS, model_explorer.convert, model_explorer.LEFT_OUT),
    "etdump": Format(etdump.KINDS, etdump.convert, etdump.LEFT_OUT),
    "bpte": Format(bundled_program.KINDS, bundled_program.convert, bundled_program.LEFT_OUT),
}


def convert(
    path: Path, name: str, output: Path, reading: Reading, reporter: Reporter, nodes: Nodes | None = None
) -> None:
    """Write the records at `path` to `output` in the format `name`; `nodes` chooses what Model Explorer shows.

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
    inputs = replace(read(path, chosen.kinds, reading), nodes=nodes or Nodes())
    if output.resolve() in (file.resolve() for file in inputs.files.values()):
        raise UsageError(f"{output} is a record that is being converted", "choose another file with -o")
    try:
        content = chosen.convert(inputs)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError(f"a number in {path} is too large to be converted") from error
    record = _record(inputs, name, output, content, reading)
    schema.check(record, "the record of the conversion")
    with bundle.listed(output, "convert"):
        writing.write_bytes(output, content)
    reading.warn(reporter)
    reporter.show(f"{escape(str(output))}: {name}, {len(content):,} bytes, from {', '.join(inputs.records)}")
    for text in chosen.left_out:
        reporter.note(f"left out: {text}")
    reporter.emit(record)


def _record(converted: Inputs, name: str, output: Path, content: bytes, reading: Reading) -> Record:
    inputs = [
        {**provenance.file_entry(kind, file), **reading.mark(file)} for kind, file in converted.files.items()
    ]
    return {
        **provenance.header(kinds.CONVERSION.schema, "pass", inputs, []),
        "format": name,
        "file": {"name": output.name, "sha256": hashing.sha256_bytes(content), "bytes": len(content)},
        "left_out": list(FORMATS[name].left_out),
        "host": host_facts.host(),
    }
