"""What `compile` left beside a program: declared feeds, and the outputs that a run is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall
from ethosu_sdk.program.feeds import Feed, parse_feeds
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import bundle, result_files
from ethosu_sdk.run.input_values import EXACT_CONVERSIONS, EXACT_MOVES, Samples

# ---- steps.run.sequences.declared
# What the compile record beside a program says of its feeds.


def declared_feeds(path: Path, program: pte.Pte, plan: ExecutionPlan) -> tuple[Feed, ...]:
    """The feeds that the model's file declares for the method `plan` of the `.pte` at `path`; none if nothing says
    so."""
    return parse_feeds(_declared_sequence(path, program, plan).get("feeds", ()))


def declared_reference(
    path: Path, program: pte.Pte, plan: ExecutionPlan, wanted: tuple[Feed, ...]
) -> Path | None:
    """The file with the outputs in PyTorch of steps that are fed as `wanted`; None if there is none."""
    found = _declared_sequence(path, program, plan)
    if "file" not in found or parse_feeds(found["feeds"]) != wanted:
        return None
    return path.with_name(Path(found["file"]).name)


def _declared_sequence(path: Path, program: pte.Pte, plan: ExecutionPlan) -> Record:
    try:
        record = bundle.read_raw_record(result_files.compile_record_path(path))
    except SdkError:
        return {}
    if record["model"]["sha256"] != program.sha256 or record["model"]["entry"] != plan.name:
        return {}
    found: Record = record.get("sequence", {})
    return found


# ---- steps.run.reference
# Compare a run of the example inputs with what `compile` left beside the program.
#
# That is the model's own outputs in PyTorch, of which the distance is recorded, and the digests of the outputs
# that the
# check of `compile` got, which must be the same.

Array = npt.NDArray[Any]

_FIGURES = ("max_abs_error", "sqnr_db")


@dataclass(frozen=True)
class Reference:
    """What stands beside the program: the record's `reference` or the reason why there is none, and a check of the
    verdict where the outputs must be the same."""

    part: Record = field(default_factory=dict)
    unavailable: tuple[Record, ...] = ()
    checks: tuple[Check, ...] = ()


def compare_with_reference(
    path: Path,
    program: pte.Pte,
    plan: ExecutionPlan,
    samples: Samples,
    outputs: Sequence[Array],
    first: int = 0,
) -> Reference:
    """The `outputs` of a run of a method of the `.pte` at `path` against what lies beside it. Of a sequence they are
    those from step number `first` on."""
    fed = declared_reference(path, program, plan, samples.steps.feeds) if samples.is_sequence else None
    stored = fed or result_files.example_io_path(path, plan.name)
    try:
        content, reason = _read_reference(stored, samples, is_fed=fed is not None)
        if fed is not None and not reason:
            content, reason = _steps_of_run(stored, outputs, content, first)
        reason = reason or _other_types(stored, content, outputs)
    except SdkError as error:
        content, reason = {}, error.message
    if reason:
        return Reference(unavailable=({"path": "/reference", "reason": reason},))
    compared = {} if fed is None else {"steps": len(outputs[0])}
    rows, gaps = [], []
    for index, array in enumerate(outputs):
        row, missing = _distance(index, content[f"output{index}"], array)
        rows.append(row)
        gaps += missing
    checks = _same_as_compiled(path, program, plan, outputs) if fed is None else ()
    return Reference({"file": stored.name, **compared, "outputs": rows}, tuple(gaps), checks)


def _read_reference(path: Path, samples: Samples, *, is_fed: bool) -> tuple[dict[str, Array], str]:
    """The outputs in the example file, and why they say nothing of this run."""
    if not path.is_file():
        return {}, f"there is no {path.name} beside the program"
    bundle.confirm_listed(path)
    content = npz.read_npz(path)
    begins = samples.stacked == is_fed and not samples.steps.first_step
    if (
        is_fed
    ):  # the steps of the file are fed from the second on: more rows, such as a prompt, are another sequence
        begins = begins and all(len(rows) == 1 for rows in samples.steps.given)
    if not begins or not all(
        _same(content.get(f"input{i}"), array) for i, array in enumerate(samples.inferences[0])
    ):
        return {}, f"the inputs are not those of {path.name}"
    return {name: row for name, row in content.items() if name.startswith("output")}, ""


def _steps_of_run(
    path: Path, outputs: Sequence[Array], content: dict[str, Array], first: int
) -> tuple[dict[str, Array], str]:
    """Those steps of the file that are the run's, of which the first has the number `first`; the reason when the file
    does not have all of them."""
    last = first + min(map(len, outputs), default=0)
    there = min(map(len, content.values()), default=0)
    if there < last:
        return content, (
            f"{path.name} has {there} steps, the run {last}: a reference that is shorter says nothing of the others"
        )
    return {name: row[first:last] for name, row in content.items()}, ""


def _other_types(path: Path, content: dict[str, Array], outputs: Sequence[Array]) -> str:
    """Why the arrays of the file are not comparable with the `outputs`; empty if they are."""
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


def _distance(index: int, stored: Array, array: Array) -> tuple[Record, list[Record]]:
    """The output's figures, and the reasons of those that do not exist."""
    from ethosu_sdk.program.output_comparison import Comparison

    comparison = Comparison()
    comparison.add(0, stored, array)
    row: Record = {"index": index, "elements": comparison.elements, "equal": comparison.equal}
    gaps = []
    for name in _FIGURES:
        value: float = getattr(comparison, name)
        if math.isfinite(value):
            row[name] = value
        else:
            where = f"/reference/outputs/{index}/{name}"
            gaps.append({"path": where, "reason": comparison.reason(name)})
    return row, gaps


def _same_as_compiled(
    path: Path, program: pte.Pte, plan: ExecutionPlan, outputs: Sequence[Array]
) -> tuple[Check, ...]:
    """The check that the outputs are those which `compile` executed; none where nothing says that they must be.

    InputError for a record that is not the one which the manifest beside it lists.
    """
    compiled = result_files.compile_record_path(path)
    if compiled.is_file():
        bundle.confirm_listed(compiled)
    try:
        record = bundle.read_raw_record(compiled)
    except SdkError:
        return ()
    methods = [{**record, "name": record["model"]["entry"]}, *record.get("other_methods", ())]
    rows: list[Record] = next(
        (row["check"].get("outputs", []) for row in methods if row["name"] == plan.name), []
    )
    if record["model"]["sha256"] != program.sha256 or len(rows) != len(outputs) or not is_exact(plan):
        return ()
    other = [
        row["index"]
        for row, array in zip(rows, outputs, strict=True)
        if row["sha256"] != filesystem.sha256_bytes(array.tobytes())
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
