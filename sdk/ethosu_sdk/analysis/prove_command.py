"""`ethosu-sdk prove`: a fixed set of programs on a runner, against references that it has no part in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from rich.table import Table

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import InputError, SimulationError, ToolError, UsageError, VerdictError
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu import pmu
from ethosu_sdk.program import pte
from ethosu_sdk.program.output_comparison import different_bits
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.prove import Prove, ProvedCounter, ProvedModel, ProvedOperation, ProvedOutput
from ethosu_sdk.records.run import Piece, Run
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import HOST, RunOptions
from ethosu_sdk.run.run_command import RunResult
from ethosu_sdk.simulate import simulation

# An integer operation on the NPU, an operator on the CPU, and two networks.
CONFORMANCE_SET: Final = ("zoo:add", "zoo:softmax", "zoo:digits_cnn", "zoo:ds_cnn")
FIDELITY_NAME = "fidelity.csv"
_COLUMNS = ("model", "npu", "mode", "active", "modelled")
_QEMU: Final = "qemu"
_PLACE = "build/prove"

Reference = Literal["host", "qemu"]


class Proved(Struct, frozen=True):
    """A program's part of the record, and its runs, where they came to their end."""

    part: ProvedModel
    reference: RunResult
    found: RunResult | None


def prove(
    models: Sequence[str],
    compile_options: CompileOptions,
    options: RunOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Prove:
    """Run `models`, by default the conformance set, and write what is proved. VerdictError, after that, when one of
    them is not."""
    chosen = tuple(dict.fromkeys(models)) or CONFORMANCE_SET
    names = [_name(model) for model in chosen]
    if len(set(names)) < len(names):
        raise UsageError("two of the models have the same name", "prove them one after the other, with -o")
    folder = filesystem.make_directory(out_dir or Path(_PLACE))
    reference: Reference = _QEMU if options.simulator == HOST else HOST
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "prove") as add:
        rows = [
            _proved(model, name, compile_options, options, reference, folder / name, reporter)
            for model, name in zip(chosen, names, strict=True)
        ]
        record = _record(rows, options, reference)
        validation.write_record(folder / kinds.PROVE.file, record, "what is proved")
        filesystem.write_bytes(folder / FIDELITY_NAME, fidelity_table(rows).encode())
        add(kinds.PROVE.file, FIDELITY_NAME)
    reporter.show(_summary(record, folder))
    reporter.emit(record.to_json())
    failed = [row for row in record.models if row.status == "fail"]
    if failed:
        raise VerdictError(
            f"{record.runner} is not proved:\n"
            + "\n".join(f"  {line}" for row in failed for line in problems(row)),
            f"the record is {folder / kinds.PROVE.file}",
            recorded=True,
        )
    return record


def _name(model: str) -> str:
    return Path(model.removeprefix("zoo:")).stem


def _proved(
    model: str,
    name: str,
    compile_options: CompileOptions,
    options: RunOptions,
    reference: Reference,
    folder: Path,
    reporter: Reporter,
) -> Proved:
    quiet = reporter.for_step()
    with reporter.stage(f"proving {escape(name)}"):
        path = run_command.program_file(model, compile_options, RunOptions(), folder, quiet)
        events = modelled_events(pte.read(path).npu())
        asked = replace(options, events=events)
        expected = _run(path, RunOptions(simulator=reference, events=events), folder / "reference", quiet)
        try:
            found = _run(path, replace(asked, split=events is not None), folder / "run", quiet)
        except (SimulationError, VerdictError) as error:
            part = ProvedModel(
                name=name,
                status="fail",
                reference=f"{name}/reference",
                problem=error.message,
                outputs=(),
                counters=(),
                operations=(),
            )
            return Proved(part, expected, None)
        pieces = _modelled_pieces(path, found.record, folder, quiet)
    return Proved(_compared(name, found, expected, pieces), expected, found)


def _run(path: Path, options: RunOptions, folder: Path, reporter: Reporter) -> RunResult:
    return run_command.run(str(path), CompileOptions(), options, folder, reporter)


def modelled_events(npu: str | None) -> str | None:
    """The PMU events that the NPU model counts, for --events; None without an NPU."""
    if npu is None:
        return None
    return ",".join(event.name for event in pmu.pmu_of(npu).events.values() if event.modelled)


def _modelled_pieces(path: Path, run: Run, folder: Path, reporter: Reporter) -> tuple[Piece, ...]:
    """The jobs of `run` as QEMU's NPU model has them; none without QEMU, or if it was QEMU itself."""
    if run.pieces is None or run.simulator.name == _QEMU:
        return ()
    board = None if run.board == HOST else run.board
    try:
        options = RunOptions(simulator=_QEMU, split=True, board=board)
        return _run(path, options, folder / "modelled", reporter).record.pieces or ()
    except (ToolError, UsageError):  # no QEMU, or none with this board
        return ()


def _compared(name: str, found: RunResult, expected: RunResult, pieces: Sequence[Piece]) -> ProvedModel:
    outputs = tuple(compare_outputs(_arrays(found), _arrays(expected)))
    counters = tuple(compare_counters(found.record, expected.record))
    is_proved = all(row.status == "pass" for row in outputs) and all(
        row.status != "differs" for row in counters
    )
    return ProvedModel(
        name=name,
        status="pass" if is_proved else "fail",
        folder=f"{name}/run",
        reference=f"{name}/reference",
        outputs=outputs,
        counters=counters,
        operations=tuple(_operations(found.record.pieces or (), pieces)),
    )


def _arrays(result: RunResult) -> list[npt.NDArray[Any]]:
    arrays = npz.read_npz(result.folder / run_command.OUTPUTS_NAME)
    return [arrays[row.name] for row in result.record.outputs]


def compare_outputs(
    found: Sequence[npt.NDArray[Any]], expected: Sequence[npt.NDArray[Any]]
) -> Iterator[ProvedOutput]:
    """Bit by bit."""
    if [(row.dtype, row.shape) for row in found] != [(row.dtype, row.shape) for row in expected]:
        raise InputError("the outputs have other types or shapes than those of the reference")
    for index, (left, right) in enumerate(zip(found, expected, strict=True)):
        places = np.flatnonzero(different_bits(left, right))
        first = int(places[0]) if len(places) else None
        yield ProvedOutput(
            index=index,
            status="pass" if first is None else "fail",
            elements=left.size,
            differing=len(places),
            first=first,
            found=None if first is None else str(left.reshape(-1)[first]),
            expected=None if first is None else str(right.reshape(-1)[first]),
        )


def compare_counters(found: Run, expected: Run) -> Iterator[ProvedCounter]:
    """The cycles and each event that both counted."""
    if found.npu is None or expected.npu is None or expected.npu.cycles is None:
        return
    rows = {row.event: row.value for row in expected.npu.counters}
    if found.npu.cycles is not None:
        own, modelled = found.npu.cycles, expected.npu.cycles
        yield _counter("cycles", own.source, int(own.value), int(modelled.value))
    for row in found.npu.counters:
        if row.event in rows:
            yield _counter(row.event, row.source, row.value, rows[row.event])


def _counter(event: str, source: Any, value: int, modelled: int) -> ProvedCounter:
    status: Literal["equal", "differs", "beside"] = "equal" if value == modelled else "differs"
    if source == simulation.MEASURED:
        status = "beside"
    return ProvedCounter(event=event, status=status, source=source, value=value, modelled=modelled)


def _operations(found: Sequence[Piece], modelled: Sequence[Piece]) -> Iterator[ProvedOperation]:
    if len(found) != len(modelled):
        return
    for own, row in zip(found, modelled, strict=True):
        yield ProvedOperation(
            delegate=own.delegate,
            offsets=own.offsets,
            source=own.cycles.source,
            cycles=int(own.cycles.value),
            modelled=int(row.cycles.value),
        )


def _record(rows: Sequence[Proved], options: RunOptions, reference: Reference) -> Prove:
    runs = [row.found.record for row in rows if row.found is not None]
    first = next(
        (run for run in runs if run.target is not None), runs[0] if runs else rows[0].reference.record
    )
    inputs, tools = [], []
    for row in rows:
        for run in (row.reference, *([row.found] if row.found else [])):
            model = provenance.file_entry("model", run.pte, run.record.model.sha256)
            inputs += [model] if model not in inputs else []
            listed = [tool.to_json() for tool in run.record.provenance.tools]
            tools += [tool for tool in listed if tool not in tools]
    is_proved = all(row.part.status == "pass" for row in rows)
    return Prove(
        status="pass" if is_proved else "fail",
        **provenance.origin(inputs, tools),
        runner=options.device or (first.simulator.name if runs else options.simulator),
        reference_runner=reference,
        target=next((row.reference.record.target for row in rows if row.reference.record.target), None),
        board=first.board,
        simulator=first.simulator if runs else None,
        device=first.device if runs else None,
        models=tuple(row.part for row in rows),
        host=provenance.this_host(),
    )


def problems(row: ProvedModel) -> Iterator[str]:
    """What is wrong with a program, a line for each."""
    if row.problem is not None:
        yield f"{row.name}: {row.problem}"
    for part in row.outputs:
        if part.status == "fail":
            yield (
                f"{row.name}: output{part.index} differs in {part.differing:,} of {part.elements:,} elements, first "
                f"element {part.first}: {part.found} instead of {part.expected}"
            )
    for own in row.counters:
        if own.status == "differs":
            yield f"{row.name}: {own.event} is {own.value:,}, the NPU model counts {own.modelled:,}"


def fidelity_table(rows: Sequence[Proved]) -> str:
    """Cycles of whole programs and of their operations beside the modelled ones, for `scripts/fidelity --data`."""
    table, sources = [], set()
    for row in rows:
        target = row.reference.record.target
        if target is None:
            continue
        place = (f"{target.npu.removeprefix('ethos-')}-{target.macs}", target.memory_mode)
        for own in row.part.counters:
            if own.event == "cycles":
                table.append((row.part.name, *place, own.value, own.modelled))
                sources.add(own.source)
        for number, operation in enumerate(row.part.operations):
            table.append((f"{row.part.name}/{number}", *place, operation.cycles, operation.modelled))
            sources.add(operation.source)
    words = " and ".join(sorted(sources)) or "absent"
    return f"# active: NPU cycles of one inference, {words}; modelled: those of the SDK's NPU model\n" + (
        result_files.csv_lines(_COLUMNS, table)
    )


def _summary(record: Prove, folder: Path) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("program", "outputs", "counters", "NPU cycles", "modelled"):
        table.add_column(name)
    for row in record.models:
        cycles = next((own for own in row.counters if own.event == "cycles"), None)
        equal = sum(own.status == "equal" for own in row.counters)
        compared = sum(own.status != "beside" for own in row.counters)
        outputs = "did not run" if row.problem else "bit-exact"
        table.add_row(
            escape(row.name),
            outputs if all(part.status == "pass" for part in row.outputs) else "[red]differ[/red]",
            f"{equal} of {compared} equal"
            if compared
            else f"{len(row.counters)} measured"
            if row.counters
            else "",
            f"{cycles.value:,} ({cycles.source})" if cycles else "",
            f"{cycles.modelled:,}" if cycles else "",
        )
    verdict = "PROVED" if record.status == "pass" else "NOT PROVED"
    table.title = f"{verdict}  {escape(record.runner)} on {record.board}, against {record.reference_runner}"
    table.title_justify = "left"
    table.caption = escape(f"{folder / kinds.PROVE.file}")
    table.caption_justify = "left"
    return table
