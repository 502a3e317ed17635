"""`ethosu-sdk zoo`: the models that come with the SDK, one line each."""

from __future__ import annotations

from rich.table import Table

from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile.zoo import ZooEntry, entries, packages
from ethosu_sdk.records import kinds, provenance, validation


def zoo(reporter: Reporter) -> None:
    """List the zoo. Nothing is built, and torch is not imported."""
    record: Record = {
        **provenance.opening(kinds.ZOO.schema, "pass"),
        "models": [_row(entry) for entry in entries()],
    }
    validation.check_record(record, "the list of the zoo")
    reporter.show(_table(entries()))
    lacking = packages.missing(name for entry in entries() for name in entry.needs)
    if lacking:
        wanted = dict.fromkeys(lacking)
        reporter.note(escape(f"the weights marked * are not installed: {packages.install_command(wanted)}"))
    reporter.emit(record)


def _row(entry: ZooEntry) -> Record:
    return {
        "name": entry.name,
        "model": f"zoo:{entry.name}",
        "task": entry.task,
        "summary": entry.summary,
        "inputs": [{"dtype": item.dtype, "shape": list(item.shape)} for item in entry.inputs],
        "quantize": entry.quantize,
        "weights": entry.weights,
        "parameters": entry.parameters,
        "needs": list(packages.requirements(entry.needs)),
        "missing": list(packages.requirements(packages.missing(entry.needs))),
    }


def _table(entries: tuple[ZooEntry, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "task", "input", "weights"):
        table.add_column(heading, no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    for entry in entries:
        mark = " *" if packages.missing(entry.needs) else ""
        table.add_row(
            entry.name, entry.task, _inputs(entry), f"{entry.weights}{mark}", f"{entry.parameters:,}"
        )
    return table


def _inputs(entry: ZooEntry) -> str:
    """The shapes of the inputs, with the type before the first that has not the type of the one before it."""
    before, texts = "float32", []
    for item in entry.inputs:
        texts.append(("" if item.dtype == before else f"{item.dtype} ") + "x".join(map(str, item.shape)))
        before = item.dtype
    return ", ".join(texts)
