"""`ethosu-sdk inspect`: what a `.pte` holds, for people or as JSON."""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import convert

from ethosu_sdk.base import board_profiles, json_text, targets
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import escape, show_parts
from ethosu_sdk.firmware_build import program_checks
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import TensorSlot, VelaBlocks
from ethosu_sdk.program import cop1, execution_plan, named_data, pte, vela_output
from ethosu_sdk.program.execution_plan import ExecutionPlan, List
from ethosu_sdk.records import inspection, provenance, result_files, validation
from ethosu_sdk.records.common import Unavailable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NUMERIC_COLUMNS = ("#", "bytes", "calls", "offset", "value")
_HEADS = ("index", "kind", "runs_on")  # members of an instruction that have columns of their own
_MOST_LIST_ITEMS = 8
_NO_NPU = "the program delegates nothing to an Ethos-U"
_NO_SYSTEM = "the file does not say which system it was compiled for"


@dataclass(frozen=True)
class InspectOptions:
    """What a description holds beside what every one does: the `commands` of the command streams, their `hazards`.

    `data` are the program's data files, by default those beside it. `system` is the profile of a board: what would
    fail there.
    """

    commands: bool = False
    hazards: bool = False
    data: tuple[Path, ...] = ()
    system: str | None = None
    memory_mode: str | None = None


NOTHING_MORE = InspectOptions()


def inspect(path: Path, *, as_json: bool, options: InspectOptions, console: Console) -> None:
    """Show the program at `path`, with the parts of its NPU command streams that `options` ask for.

    With `as_json`, stdout gets the record and `console` nothing. Raises InputError for a damaged file.
    """
    record = inspect_file(Path(result_files.program_of(str(path))), options)
    if as_json:
        sys.stdout.write(json_text.dumps(record.to_json()))
    else:
        _show(record, console)


def inspect_file(path: Path, options: InspectOptions = NOTHING_MORE) -> inspection.Inspection:
    """The record of the program at `path`, with what else `options` ask of it. InputError if damaged."""
    is_output = cop1.is_stream(path) or vela_output.is_output(path)
    program = vela_output.read(path) if is_output else pte.read(path, options.data)
    record = describe(path, program, options)
    validation.check_record(record.to_json(), "the inspection")
    return record


def describe(path: Path, program: pte.Pte, options: InspectOptions = NOTHING_MORE) -> inspection.Inspection:
    """The record of the `program` at `path`: target, methods, segments. Sizes and offsets are in bytes.

    Values are referred to by their index in `methods[].values`. With `options.commands`, each Ethos-U delegate gets
    its disassembled command stream, with `options.hazards` what that does too early. Raises InputError when the file
    contradicts itself about its target, or when a command does not exist.
    """
    target = provenance.recorded_target(program.target())
    return inspection.Inspection(
        status="pass",
        **provenance.origin(result_files.program_entries(path, program), []),
        file=inspection.File(
            name=path.name,
            sha256=program.sha256,
            bytes=program.size,
            program_bytes=program.header.program_bytes,
            extended_header=program.header.extended,
        ),
        target=target,
        methods=described_methods(program, options),
        segments=convert(program.segments, tuple[inspection.FileSegment, ...], from_attributes=True),
        named_data=tuple(
            inspection.NamedData(key=key, bytes=len(data)) for key, data in program.named_data.items()
        ),
        data_files=tuple(map(_data_file, program.data_files)) or None,
        board=None
        if options.system is None
        else _on_board(program, options.system, options.memory_mode or ""),
        unavailable=()
        if target is not None
        else (Unavailable(path="/target", reason=_NO_SYSTEM if program.is_stream else _NO_NPU),),
    )


def _on_board(program: pte.Pte, system: str, mode: str) -> inspection.OnBoard:
    from ethosu_sdk.analysis import stream_findings

    profile = board_profiles.find_profile(system)
    found = stream_findings.program_findings(program, profile, mode)
    rows = tuple(inspection.Finding(**row._asdict()) for row in found)
    return inspection.OnBoard(name=profile.name, findings=rows)


def _data_file(file: named_data.DataFile) -> inspection.DataFile:
    return inspection.DataFile(
        name=file.path.name,
        sha256=file.sha256,
        bytes=file.size,
        data=tuple(
            inspection.DataRow(
                key=key,
                bytes=len(blob.data),
                dtype=None if blob.layout is None else blob.layout.dtype,
                shape=None if blob.layout is None else blob.layout.sizes,
            )
            for key, blob in file.blobs.items()
        ),
    )


def described_methods(
    program: pte.Pte, options: InspectOptions = NOTHING_MORE
) -> tuple[inspection.Method, ...]:
    return tuple(_method(plan, options) for plan in program.plans)


def _method(plan: ExecutionPlan, options: InspectOptions) -> inspection.Method:
    constants = {  # which several values may share
        value.data_buffer_idx: value.nbytes
        for value in plan.values
        if isinstance(value, execution_plan.Tensor) and value.is_constant and not value.external_name
    }
    operators = plan.called_operators().items()
    instructions = (row for chain in plan.chains for row in enumerate(chain.instructions))
    tensors = Counter(
        value.allocation.memory_id
        for value in plan.values
        if isinstance(value, execution_plan.Tensor) and value.allocation is not None
    )
    return inspection.Method(
        name=plan.name,
        inputs=tuple(plan.inputs),
        outputs=tuple(plan.outputs),
        operators=tuple(
            inspection.Operator(name=name, runs_on="CPU", calls=calls) for name, calls in operators
        ),
        delegates=tuple(_delegates(plan, options)),
        instructions=tuple(_instruction(index, row, plan) for index, row in instructions),
        memory_plan=tuple(
            inspection.MemoryPlan(memory_id=memory_id, bytes=size, tensors=tensors[memory_id])
            for memory_id, size in enumerate(plan.non_const_buffer_sizes)
            if memory_id  # entry 0 is not used
        ),
        constant_bytes=sum(constants.values()),
        values=tuple(_values(plan)),
    )


def _instruction(index: int, row: execution_plan.Instruction, plan: ExecutionPlan) -> inspection.Instruction:
    if isinstance(row, execution_plan.KernelCall):
        name = plan.operators[row.op_index].full_name
        return inspection.Instruction(
            index=index, kind="KernelCall", runs_on="CPU", name=name, args=tuple(row.args)
        )
    if isinstance(row, execution_plan.DelegateCall):
        delegate = plan.delegates[row.delegate_index]
        return inspection.Instruction(
            index=index,
            kind="DelegateCall",
            runs_on="NPU" if delegate.vela is not None else delegate.id,
            name=delegate.id,
            delegate=row.delegate_index,
            args=tuple(row.args),
        )
    return inspection.Instruction(
        index=index, kind=convert(row.kind, inspection.InstructionKind), runs_on="CPU", **asdict(row)
    )


def _delegates(plan: ExecutionPlan, options: InspectOptions) -> Iterator[inspection.Delegate]:
    called = (row for row in plan.instructions if isinstance(row, execution_plan.DelegateCall))
    calls = Counter(row.delegate_index for row in called)
    pieces = {(row.payload_offset, len(row.payload)): row.payload for row in plan.delegates}  # may be shared
    hashes = {key: hashlib.sha256(payload).hexdigest() for key, payload in pieces.items()}
    for index, row in enumerate(plan.delegates):
        yield inspection.Delegate(
            index=index,
            id=row.id,
            calls=calls[index],
            payload_offset=row.payload_offset,
            payload_bytes=len(row.payload),
            sha256=hashes[row.payload_offset, len(row.payload)],
            compile_specs={key: _text(value) for key, value in row.compile_specs.items()},
            vela=None if row.vela is None else _vela(row.vela, options),
        )


def _text(value: bytes) -> str:
    """A compile specification as text; bytes that are none as hexadecimal."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _vela(vela: VelaBlocks, options: InspectOptions) -> inspection.Vela:
    # A bare stream has no blocks: its weights are what it reads of them.
    weight_bytes = len(vela.weights) if vela.blocks else cop1.reached_bytes(vela)[vela_blocks.REGION_WEIGHTS]
    return inspection.Vela(
        accelerator=targets.accelerator(vela.config_word),
        config_word=f"{vela.config_word:#010x}",
        arch_word=f"{vela.arch_word:#010x}",
        command_stream_bytes=len(vela.command_stream),
        weight_bytes=weight_bytes,
        scratch_bytes=vela.scratch_bytes,
        inputs=tuple(map(_slot, vela.inputs)),
        outputs=tuple(map(_slot, vela.outputs)),
        blocks=tuple(
            inspection.Block(name=row.name, offset=row.offset, length=row.length) for row in vela.blocks
        ),
        commands=_commands(vela) if options.commands else None,
        hazards=tuple(program_checks.hazard_sentences(vela)) if options.hazards else None,
    )


def _commands(vela: VelaBlocks) -> tuple[inspection.Command, ...]:
    """The command stream: byte offsets in it, names as in Arm's register headers, raw values of fields."""
    from ethosu_sdk.npu.stream import registers

    family = targets.family_by_number(vela.config_word >> 28)
    generation = family.generation if family else "u55"
    return tuple(
        inspection.Command(
            offset=row.offset,
            name=f"NPU_{row.type.name}",
            fields={field.name: field.value_in(row.bits) for field in row.type.fields},
        )
        for row in registers.commands(vela.command_stream, generation)
    )


def _slot(slot: TensorSlot) -> inspection.Input:
    return inspection.Input(
        shape=tuple(slot.shape),
        element_bytes=convert(slot.element_bytes, inspection.ElementBytes),
        bytes=slot.nbytes,
        region=slot.region,
        offset=slot.offset,
    )


def _values(plan: ExecutionPlan) -> Iterator[inspection.Value]:
    # A value that is both is an input that the method hands back.
    roles: dict[int, inspection.Role] = {}
    roles |= dict.fromkeys(plan.outputs, "output")
    roles |= dict.fromkeys(plan.inputs, "input")
    for index, value in enumerate(plan.values):
        if isinstance(value, execution_plan.Tensor):
            inner: inspection.Role = "intermediate" if value.data is None else "state"
            yield _tensor(index, value, roles.get(index, "constant" if value.is_constant else inner))
        elif isinstance(value, List):
            items = tuple(_number(item) for item in value.items)
            yield inspection.Value(index=index, kind=convert(value.kind, inspection.ValueKind), items=items)
        else:
            known = None if value.value is None else _number(value.value)
            yield inspection.Value(index=index, kind=convert(value.kind, inspection.ValueKind), value=known)


def _number(value: float | str) -> float | str:
    """`value` itself; what JSON cannot hold (NaN and infinities) as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tensor(index: int, tensor: execution_plan.Tensor, role: inspection.Role) -> inspection.Value:
    allocation = tensor.allocation
    return inspection.Value(
        index=index,
        kind="Tensor",
        dtype=tensor.dtype,
        shape=tuple(tensor.sizes),
        dim_order=tuple(tensor.dim_order),
        dynamism=convert(tensor.dynamism, inspection.Dynamism),
        bytes=tensor.nbytes,
        memory_id=None if allocation is None else allocation.memory_id,
        offset=None if allocation is None else allocation.offset,
        has_data=True if tensor.data is not None else None,
        name=tensor.name or None,
        external_name=tensor.external_name or None,
        role=role,
    )


def npu_share(method: inspection.Method) -> tuple[int, int]:
    """(calls that run on the NPU, all operator and delegate calls) of a method."""
    calls = [row for row in method.instructions if row.kind in ("KernelCall", "DelegateCall")]
    return sum(row.runs_on == "NPU" for row in calls), len(calls)


def _show(record: inspection.Inspection, console: Console) -> None:
    console.print(_summary(record))
    constants = _table("constant methods", "method", "value")
    for method in record.methods:
        if not method.instructions:
            values = (_argument(method.values[index], method.values) for index in method.outputs)
            constants.add_row(escape(method.name), ", ".join(values))
            continue
        on_npu, calls = npu_share(method)
        share = f"{on_npu} of {counted(calls, 'call')} on the NPU"
        console.print(f"\n[bold]method {escape(method.name)}[/bold]: {share}")
        tables = [_instruction_table(method), _delegate_table(method.delegates)]
        tables += [_vela_table(row.index, row.vela) for row in method.delegates if row.vela is not None]
        for table in (*tables, _memory_table(method), _tensor_table(method.values)):
            _print_table(table, console)
        for delegate in method.delegates:
            if delegate.vela is not None:
                _print_stream(delegate.index, delegate.vela, console)
    _print_table(constants, console)
    if record.board is not None:
        _print_findings(record.board, console)


def _print_findings(board: inspection.OnBoard, console: Console) -> None:
    found = f"{len(board.findings)} would fail" if board.findings else "nothing that would fail"
    console.print(f"\n[bold]on {escape(board.name)}[/bold]: {found}")
    for row in board.findings:
        for label, text in (("wrong", row.problem), ("shown", row.shown), ("do", row.way_out)):
            console.print(f"{label:<5} {text}", markup=False, soft_wrap=True)


def _print_table(table: Table, console: Console) -> None:
    if table.row_count:
        show_parts(console, table)


def _print_stream(delegate: int, vela: inspection.Vela, console: Console) -> None:
    """The disassembly, one line for each command, in which operations stand out; the hazards."""
    if vela.commands:
        count = counted(len(vela.commands), "command")
        console.print(f"[dim]command stream of delegate {delegate}, {count}[/dim]")
    for row in vela.commands or ():
        fields = " ".join(f"{name}={value:#x}" for name, value in row.fields.items())
        line = f"{row.offset:#06x}  {row.name:<28} {fields}".rstrip()
        style = "bold" if row.name.startswith("NPU_OP_") else None
        console.print(line, style=style, markup=False, soft_wrap=True)
    if vela.hazards is not None:
        found = len(vela.hazards) or "none: its waits and BLOCKDEP suffice"
        console.print(f"[dim]hazards of delegate {delegate}: {found}[/dim]")
    for sentence in vela.hazards or ():
        console.print(sentence, markup=False, soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="dim")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in _NUMERIC_COLUMNS else "left"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _summary(record: inspection.Inspection) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    file = record.file
    table.add_row("file", f"{escape(file.name)}, {file.bytes:,} bytes")
    table.add_row("sha256", file.sha256)
    target = record.target
    table.add_row("target", record.unavailable[0].reason if target is None else escape(target.words))
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


def _instruction_table(method: inspection.Method) -> Table:
    table = _table("instructions", "#", "runs on", "operator", "arguments")
    values = method.values
    for row in method.instructions:
        arguments = ", ".join(_argument(values[index], values) for index in row.args or ())
        if row.args is None:
            facts = {key: value for key, value in row.to_json().items() if key not in _HEADS}
            arguments = ", ".join(escape(f"{key} {value}") for key, value in facts.items())
        style = "green" if row.runs_on == "NPU" else "none"
        operator = escape(row.name or row.kind)
        table.add_row(str(row.index), escape(row.runs_on), operator, arguments, style=style)
    return table


def _argument(value: inspection.Value, values: Sequence[inspection.Value]) -> str:
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


def _delegate_table(delegates: Sequence[inspection.Delegate]) -> Table:
    table = _table("delegates", "#", "backend", "calls", "bytes", "offset", "sha256")
    for row in delegates:
        sizes = (f"{row.payload_bytes:,}", f"{row.payload_offset:,}", row.sha256[:16])
        table.add_row(str(row.index), escape(row.id), str(row.calls), *sizes)
    return table


def _vela_table(delegate: int, vela: inspection.Vela) -> Table:
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


def _memory_table(method: inspection.Method) -> Table:
    table = _table("memory plan", "buffer", "bytes", "")
    for row in method.memory_plan:
        table.add_row(str(row.memory_id), f"{row.bytes:,}", counted(row.tensors, "tensor"))
    if method.constant_bytes:
        table.add_row("constants", f"{method.constant_bytes:,}", "")
    return table


def _tensor_table(values: Sequence[inspection.Value]) -> Table:
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
