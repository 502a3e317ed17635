"""What `compile` left beside a program: declared feeds, and the outputs that a run is compared with."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from msgspec import Struct

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall
from ethosu_sdk.program.feeds import Feed, parse_feeds
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import bundle, result_files
from ethosu_sdk.records.common import Unavailable
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.run import Reference as ReferencePart, ReferenceOutput
from ethosu_sdk.run.input_values import EXACT_CONVERSIONS, EXACT_MOVES, Samples

Array = npt.NDArray[Any]


class CompileRecord:
    """What `compile` wrote beside a program, which is read when it is first asked for, and once."""

    def __init__(self, pte: Path, sha256: str) -> None:
        self.pte, self._sha256 = pte, sha256

    @functools.cached_property
    def content(self) -> Compilation | None:
        """The record; None where there is none, or it is about another program. InputError for one that is damaged or
        was changed."""
        path = result_files.compile_record_path(self.pte)
        return bundle.compilation_of(path, self._sha256) if path.is_file() else None

    @property
    def readable(self) -> Compilation | None:
        """The same; None also for one that cannot be read."""
        try:
            return self.content
        except SdkError:
            return None


def declared_feeds(compiled: CompileRecord, method: str) -> tuple[Feed, ...]:
    """The feeds that the model's file declares for its first method; none for another."""
    record = compiled.readable
    if record is None or record.sequence is None or record.model.entry != method:
        return ()
    return parse_feeds(record.sequence.feeds)


def _declared_reference(compiled: CompileRecord, method: str, wanted: tuple[Feed, ...]) -> Path | None:
    record = compiled.readable
    if record is None or record.sequence is None or declared_feeds(compiled, method) != wanted:
        return None
    file = record.sequence.file
    return None if file is None else compiled.pte.with_name(Path(file).name)


class Reference(Struct, frozen=True):
    """The record's `reference`, or why there is none, and a check where the outputs must be the same."""

    part: ReferencePart | None = None
    unavailable: tuple[Unavailable, ...] = ()
    checks: tuple[Check, ...] = ()


def compare_with_reference(
    compiled: CompileRecord, plan: ExecutionPlan, samples: Samples, outputs: Sequence[Array], first: int
) -> Reference:
    """The `outputs` of a run of a method against what `compile` left beside the program: the model's own outputs in
    PyTorch, of which the distance is recorded, and the digests of the outputs that the check of `compile` got, which
    must be the same. Of a sequence `outputs` are those from step number `first` on."""
    fed = None
    if samples.is_sequence:
        fed = _declared_reference(compiled, plan.name, samples.steps.feeds)
    stored = fed or result_files.example_io_path(compiled.pte, plan.name)
    try:
        content, reason = _read_reference(stored, samples, is_fed=fed is not None)
        if fed is not None and not reason:
            content, reason = _steps_of_run(stored, outputs, content, first)
        reason = reason or _other_types(stored, content, outputs)
    except SdkError as error:
        content, reason = {}, error.message
    if reason:
        return Reference(unavailable=(Unavailable(path="/reference", reason=reason),))
    rows, gaps = [], []
    for index, array in enumerate(outputs):
        row, missing = _distance(index, content[f"output{index}"], array)
        rows.append(row)
        gaps += missing
    steps = None if fed is None else len(outputs[0])
    checks = _same_as_compiled(compiled, plan, outputs) if fed is None else ()
    part = ReferencePart(file=stored.name, outputs=tuple(rows), steps=steps)
    return Reference(part, tuple(gaps), checks)


def _read_reference(path: Path, samples: Samples, *, is_fed: bool) -> tuple[dict[str, Array], str]:
    if not path.is_file():
        return {}, f"there is no {path.name} beside the program"
    bundle.confirm_listed(path)
    content = npz.read_npz(path)
    begins = samples.stacked == is_fed and not samples.steps.first_step
    # Steps of the file are fed from the second on: more rows, such as a prompt, are another sequence.
    if is_fed:
        begins = begins and all(len(rows) == 1 for rows in samples.steps.given)
    if not begins or not all(
        _same(content.get(f"input{i}"), array) for i, array in enumerate(samples.inferences[0])
    ):
        return {}, f"the inputs are not those of {path.name}"
    return {name: row for name, row in content.items() if name.startswith("output")}, ""


def _steps_of_run(
    path: Path, outputs: Sequence[Array], content: dict[str, Array], first: int
) -> tuple[dict[str, Array], str]:
    """The steps of the file that are the run's, from number `first` on; the reason when the file lacks some."""
    last = first + min(map(len, outputs), default=0)
    there = min(map(len, content.values()), default=0)
    if there < last:
        return content, (
            f"{path.name} has {there} steps, the run {last}: a reference that is shorter says nothing of the others"
        )
    return {name: row[first:last] for name, row in content.items()}, ""


def _other_types(path: Path, content: dict[str, Array], outputs: Sequence[Array]) -> str:
    for index, array in enumerate(outputs):
        known = content.get(f"output{index}")
        if known is None or known.shape != array.shape or known.dtype != array.dtype:
            return f"{path.name} has no output{index} of this program's type"
    return ""


def _same(stored: Array | None, array: Array) -> bool:
    return (
        stored is not None
        and (stored.shape, stored.dtype) == (array.shape, array.dtype)
        and stored.tobytes() == array.tobytes()
    )


def _distance(index: int, stored: Array, array: Array) -> tuple[ReferenceOutput, list[Unavailable]]:
    from ethosu_sdk.program.output_comparison import Comparison

    comparison = Comparison()
    comparison.add(0, stored, array)
    figures, gaps = {}, []
    for name in ("max_abs_error", "sqnr_db"):
        value: float = getattr(comparison, name)
        if math.isfinite(value):
            figures[name] = value
        else:
            where = f"/reference/outputs/{index}/{name}"
            gaps.append(Unavailable(path=where, reason=comparison.reason(name)))
    row = ReferenceOutput(index=index, elements=comparison.elements, equal=comparison.equal, **figures)
    return row, gaps


def _same_as_compiled(
    compiled: CompileRecord, plan: ExecutionPlan, outputs: Sequence[Array]
) -> tuple[Check, ...]:
    """The check that outputs are those which `compile` executed, where they must be. InputError for a changed
    record."""
    try:
        record = compiled.content
    except SdkError:
        bundle.confirm_listed(result_files.compile_record_path(compiled.pte))
        return ()
    if record is None:
        return ()
    checks = {record.model.entry: record.check} | {row.name: row.check for row in record.other_methods or ()}
    rows = checks[plan.name].outputs or () if plan.name in checks else ()
    if len(rows) != len(outputs) or not is_exact(plan):
        return ()
    other = [
        row.index
        for row, array in zip(rows, outputs, strict=True)
        if row.sha256 != filesystem.sha256_bytes(array.tobytes())
    ]
    detail = "all outputs are equal, bit for bit"
    if other:
        detail = (
            f"output {', '.join(map(str, other))} is not what ExecuTorch's runtime gave on the host simulator"
        )
    return (Check("the outputs are those that compile executed", not other, detail),)


def is_exact(plan: ExecutionPlan) -> bool:
    """Whether the method gives the same bits on every machine."""
    used = {
        plan.operators[step.op_index].full_name for step in plan.instructions if isinstance(step, KernelCall)
    }
    return all(name.startswith(EXACT_CONVERSIONS) or name.partition(".")[0] in EXACT_MOVES for name in used)
