"""The SDK's own models: small and reproducible. Together they cover every way in which an operator can run. The table
is light; a model's module imports torch when :func:`load` builds it."""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.table import Table

from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile.zoo import digits as digits, packages
from ethosu_sdk.compile.zoo.packages import ZooModel
from ethosu_sdk.records import kinds, provenance, validation


@dataclass(frozen=True)
class ZooInput:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ZooEntry:
    """One row of zoo.toml. `summary` is a sentence, `task` two or three words. `function` of this package's `module`
    builds the model, which is meant for `quantize`. `weights` is ``none``, ``random``, ``trained`` or ``pretrained``,
    `parameters` how many there are; `needs` are the distributions that carry them, and data
    (:mod:`ethosu_sdk.compile.zoo.packages`). A `stateful` one keeps values from one inference to the next."""

    name: str
    task: str
    summary: str
    module: str
    quantize: str
    weights: str
    parameters: int
    inputs: tuple[ZooInput, ...]
    function: str = "build"
    needs: tuple[str, ...] = ()
    stateful: bool = False


@functools.cache
def entries() -> tuple[ZooEntry, ...]:
    table = tomllib.loads(Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8"))
    return tuple(msgspec.convert({"name": name, **row}, ZooEntry) for name, row in table.items())


def names() -> tuple[str, ...]:
    return tuple(entry.name for entry in entries())


def stateless() -> tuple[str, ...]:
    """The names of the models that keep nothing from one inference to the next."""
    return tuple(entry.name for entry in entries() if not entry.stateful)


def entry(name: str) -> ZooEntry:
    return {row.name: row for row in entries()}[name]


def source(name: str) -> Path:
    """The file that builds the zoo model `name`: its identity."""
    return Path(__file__).with_name(f"{entry(name).module}.py")


def load(name: str) -> ZooModel:
    """Build the zoo model `name` (imports torch). The same name gives the same weights each time. ToolError when a
    package that carries its weights or data is missing or another version."""
    row = entry(name)
    packages.require(f"zoo:{name}", row.needs)
    build: Callable[[], ZooModel] = getattr(importlib.import_module(f"{__name__}.{row.module}"), row.function)
    return build()


def show_zoo(reporter: Reporter) -> None:
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
