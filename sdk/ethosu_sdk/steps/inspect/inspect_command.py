"""`ethosu-sdk inspect`: what a `.pte` holds, for people or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ethosu_sdk import pte, schema
from ethosu_sdk.console.terminal import escape, show
from ethosu_sdk.files import json_text
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.printed.inspect import Delegate, Inspection, Method, Value, Vela
from ethosu_sdk.steps.inspect.description import NOTHING_MORE, InspectOptions, describe, npu_share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["InspectOptions", "describe", "inspect"]

_NUMERIC_COLUMNS = ("#", "bytes", "calls", "offset", "value")
_MOST_LIST_ITEMS = 8


def inspect(path: Path, *, as_json: bool, options: InspectOptions, console: Console) -> None:
    """Show the program at `path`, with the parts of its NPU command streams that `options` ask for.

    With `as_json`, stdout gets the record and `console` nothing. Raises InputError for a damaged file.
    """
    record = make(path, options)
    if as_json:
        sys.stdout.write(json_text.dumps(record))
    else:
        _show(kinds.INSPECT.convert(record), console)


def make(path: Path, options: InspectOptions = NOTHING_MORE) -> Record:
    """The record of the program at `path`, with what else `options` ask of it. InputError if damaged."""
    record = describe(path, pte.read(path, options.data), options).to_json()
    schema.check(record, "the inspection")
    return record


def _show(record: Inspection, console: Console) -> None:
    console.print(_summary(record))
    constants = _table("constant methods", "method", "value")
    for method in record.methods:
        if not method.instructions:
            values = (_argument(method.values[index], method.values) for index in method.outputs)
            constants.add_row(escape(method.name), ", ".join(values))
            continue
        on_npu, calls = npu_share(method)
        console.print(
            f"\n[bold]method {escape(method.name)}[/bold]: {on_npu} of {counted(calls, 'call')} on the NPU"
        )
        _print_tables(_method_tables(method), console)
        for delegate in method.delegates:
            _print_commands(delegate, console)
            _print_hazards(delegate, console)
    _print_tables([constants], console)


def _print_commands(delegate: Delegate, console: Console) -> None:
    """The disassembly: one line for each command, operations stand out."""
    commands = (delegate.vela.commands if delegate.vela is not None else None) or ()
    if commands:
        console.print(
            f"[dim]command stream of delegate {delegate.index}, {counted(len(commands), 'command')}[/dim]"
        )
    for row in commands:
        fields = " ".join(f"{name}={value:#x}" for name, value in row.fields.items())
        line = f"{row.offset:#06x}  {row.name:<28} {fields}".rstrip()
        style = "bold" if row.name.startswith("NPU_OP_") else None
        console.print(line, style=style, markup=False, soft_wrap=True)


def _print_hazards(delegate: Delegate, console: Console) -> None:
    hazards = delegate.vela.hazards if delegate.vela is not None else None
    if hazards is not None:
        count = len(hazards) or "none: its waits and BLOCKDEP suffice"
        console.print(f"[dim]hazards of delegate {delegate.index}: {count}[/dim]")
    for sentence in hazards or ():
        console.print(sentence, markup=False, soft_wrap=True)


def _print_tables(tables: Sequence[Table], console: Console) -> None:
    for table in tables:
        if table.row_count:
            show(console, table)


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="dim")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in _NUMERIC_COLUMNS else "left"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _summary(record: Inspection) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    file = record.file
    table.add_row("file", f"{escape(file.name)}, {file.bytes:,} bytes")
    table.add_row("sha256", file.sha256)
    target = record.target
    if target is None:
        table.add_row("target", record.unavailable[0].reason)
    else:
        table.add_row("target", escape(target.words))
    for segment in record.segments:
        if segment.size:
            table.add_row("segment", f"{segment.size:,} bytes at {segment.offset:,}")
    for blob in record.named_data:
        table.add_row("named data", f"{escape(blob.key)}, {blob.bytes:,} bytes")
    for data_file in record.data_files or ():
        table.add_row("data file", f"{escape(data_file.name)}, {data_file.bytes:,} bytes")
        for row in data_file.data:
            form = "" if row.dtype is None else f", {row.dtype}{list(row.shape or ())}"
            table.add_row("", f"{escape(row.key)}, {row.bytes:,} bytes{form}")
    return table


def _method_tables(method: Method) -> list[Table]:
    return [
        _instruction_table(method),
        _delegate_table(method.delegates),
        *(_vela_table(row.index, row.vela) for row in method.delegates if row.vela is not None),
        _memory_table(method),
        _tensor_table(method.values),
    ]


def _instruction_table(method: Method) -> Table:
    table = _table("instructions", "#", "runs on", "operator", "arguments")
    values = method.values
    for row in method.instructions:
        arguments = ", ".join(_argument(values[index], values) for index in row.args or ())
        if row.args is None:
            arguments = ", ".join(
                escape(f"{key} {value}")
                for key, value in row.to_json().items()
                if key not in ("index", "kind", "runs_on")
            )
        style = "green" if row.runs_on == "NPU" else "none"
        operator = escape(row.name or row.kind)
        table.add_row(str(row.index), escape(row.runs_on), operator, arguments, style=style)
    return table


def _argument(value: Value, values: Sequence[Value]) -> str:
    """A value as an argument: a tensor by its number, a scalar as it is, a list by its items."""
    if value.kind == "Tensor":
        return f"%{value.index}"
    if value.items is None:
        return escape(value.value)
    items = value.items[:_MOST_LIST_ITEMS]
    if value.kind in ("IntList", "TensorList", "OptionalTensorList"):
        texts = ["None" if index < 0 else _argument(values[index], values) for index in map(int, items)]
    else:
        texts = [escape(item) for item in items]
    more = ["…"] if len(value.items) > len(items) else []
    return escape("[") + " ".join(texts + more) + "]"


def _delegate_table(delegates: Sequence[Delegate]) -> Table:
    table = _table("delegates", "#", "backend", "calls", "bytes", "offset", "sha256")
    for row in delegates:
        table.add_row(
            str(row.index),
            escape(row.id),
            str(row.calls),
            f"{row.payload_bytes:,}",
            f"{row.payload_offset:,}",
            row.sha256[:16],
        )
    return table


def _vela_table(delegate: int, vela: Vela) -> Table:
    table = _table(f"Vela blocks of delegate {delegate}, for {vela.accelerator}", "part", "bytes", "")
    config = f"CONFIG {vela.config_word}, ID {vela.arch_word}"
    table.add_row("command stream", f"{vela.command_stream_bytes:,}", config)
    table.add_row("weights", f"{vela.weight_bytes:,}", "region 0")
    table.add_row("scratch", f"{vela.scratch_bytes:,}", "region 1")
    for kind, slots in (("input", vela.inputs), ("output", vela.outputs)):
        for index, slot in enumerate(slots):
            where = f"{list(slot.shape)} x {slot.element_bytes}, region {slot.region} at {slot.offset:,}"
            table.add_row(f"{kind} {index}", f"{slot.bytes:,}", escape(where))
    return table


def _memory_table(method: Method) -> Table:
    table = _table("memory plan", "buffer", "bytes", "")
    for row in method.memory_plan:
        table.add_row(str(row.memory_id), f"{row.bytes:,}", counted(row.tensors, "tensor"))
    if method.constant_bytes:
        table.add_row("constants", f"{method.constant_bytes:,}", "")
    return table


def _tensor_table(values: Sequence[Value]) -> Table:
    table = _table("tensors", "value", "role", "type", "shape", "bytes", "buffer", "offset", "name")
    for row in values:
        if row.kind != "Tensor":
            continue
        shape, order = list(row.shape or ()), list(row.dim_order or ())
        layout = "" if order == sorted(order) else f" order {order}"
        dynamism = "" if row.dynamism in (None, "STATIC") else f" {row.dynamism.lower()}"
        table.add_row(
            f"%{row.index}",
            row.role,
            row.dtype,
            escape(f"{shape}{layout}{dynamism}"),
            f"{row.bytes:,}",
            "" if row.memory_id is None else str(row.memory_id),
            "" if row.offset is None else f"{row.offset:,}",
            escape(row.name or ""),
        )
    return table
