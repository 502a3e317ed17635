"""The `check` of a compilation's record, and its words for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import aot, provenance
from ethosu_sdk.aot.comparison.distance import Distance, Figure
from ethosu_sdk.errors import SdkError, VerdictError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.steps.compile import compile_record, unrunnable

PASS, FAIL, UNAVAILABLE, LEFT_OUT = "pass", "fail", "unavailable", "left-out"
_HINT = "all files were written; compile.json has the figures under check; --no-check skips the comparison"


@dataclass(frozen=True)
class Checked:
    """What a check found: the distance of each output; or the failure of the program; or why nothing is known."""

    executed: Sequence[npt.NDArray[Any]] = ()
    distances: Sequence[Distance] = ()
    facts: aot.CheckFacts | None = None
    runner: Path | None = None
    failure: SdkError | None = None
    unavailable: str = ""
    start: aot.StartFacts | None = None
    linked: Sequence[aot.LinkedOutput] = ()


def left_out(record: Record) -> Record:
    """`record`, with the check marked as left out."""
    return {**record, "check": {"status": LEFT_OUT, "reason": "--no-check"}}


def extend(record: Record, checked: Checked, seconds: float) -> Record:
    """`record` with the check, its time, and the status that follows."""
    timed = {**record, "check_time_s": round(seconds, 3)}
    if checked.unavailable:
        warning = f"The program was not executed, so nothing is known of its outputs: {checked.unavailable}."
        return {
            **timed,
            "check": {"status": UNAVAILABLE, "reason": checked.unavailable},
            "warnings": [*record["warnings"], warning],
        }
    if checked.failure is not None:
        return {**timed, "status": FAIL, "check": {"status": FAIL, "reason": checked.failure.message}}
    assert checked.facts is not None
    assert checked.runner is not None
    status = PASS if all(row.explained for row in checked.distances) else FAIL
    rows = zip(checked.executed, checked.distances, strict=True)
    parts, unavailable = [], []
    for index, (array, distance) in enumerate(rows):
        part, gaps = _output(index, array, distance)
        parts.append(part)
        unavailable += gaps
    version = provenance.package_version("executorch") or "unknown"
    entry = provenance.file_entry("host-runner", checked.runner)
    inputs = record["provenance"]["inputs"]
    return {
        **timed,
        "status": record["status"] if status == PASS else FAIL,
        "provenance": {**record["provenance"], "inputs": [*inputs, entry]},
        "check": {
            "status": status,
            "executor": f"ExecuTorch {version}'s runtime on this machine, delegates on the SDK's NPU model",
            "samples": checked.facts.samples,
            "trials": checked.facts.trials,
            "stateful": checked.facts.stateful,
            "outputs": parts,
            **({} if checked.start is None else {"start": _start(checked.start)}),
        },
        "unavailable": [*record["unavailable"], *unavailable],
    }


def _output(index: int, array: npt.NDArray[Any], distance: Distance) -> tuple[Record, list[Record]]:
    """The output's object, and the members that it lacks with the reasons."""
    part: Record = {
        "index": index,
        "status": PASS if distance.explained else FAIL,
        "detail": distance.detail,
        "sha256": hashing.sha256_bytes(array.tobytes()),
        "elements": distance.elements,
        "equal": distance.equal,
        "left_out": distance.left_out,
        "not_finite": distance.not_finite,
        "step": distance.step,
    }
    for name in ("rms", "largest", "differing"):
        figure: Figure | None = getattr(distance, name)
        if figure is not None:
            members = {"executed": figure.executed, "rounding": figure.rounding, "limit": figure.limit}
            part[name] = members
    if distance.ties_up is not None:
        part["ties_up"] = {"equal": distance.ties_up.equal, "largest": distance.ties_up.largest}
    if math.isfinite(distance.sqnr_db):
        part["sqnr_db"] = distance.sqnr_db
        return part, []
    reason = "the output holds integers or truth values, whose differences mean nothing"
    if distance.differing is None:
        reason = "there is no noise" if distance.sqnr_db > 0 else "the reference is zero everywhere"
    return part, [{"path": f"/check/outputs/{index}/sqnr_db", "reason": reason}]


def _start(start: aot.StartFacts) -> Record:
    part: Record = {
        "text": start.text,
        "certain": start.certain,
        "tosa": {"operator": start.tosa_operator, "tensor": start.tosa_tensor},
    }
    if start.operator is not None:
        part["operator"] = start.operator
    return part | compile_record.source_part(start.source)


def does_not_run(record: Record) -> bool:
    """Whether the check found a program that cannot be executed."""
    return record["check"]["status"] == FAIL and "outputs" not in record["check"]


def line(record: Record) -> str:
    """The check in a few words."""
    check = record["check"]
    if check["status"] in (UNAVAILABLE, LEFT_OUT):
        return f"not executed: {check['reason']}"
    seconds = f"({record['check_time_s']:.1f} s)"
    if "outputs" not in check:
        return f"failed: {check['reason']} {seconds}"
    rows = check["outputs"]
    names = [f"output{row['index']}: " if len(rows) > 1 else "" for row in rows]
    return "; ".join(name + row["detail"] for name, row in zip(names, rows, strict=True)) + f" {seconds}"


def raise_if_failed(record: Record, *, recorded: bool) -> None:
    """VerdictError when rounding does not explain what the program gives, InputError when it does not run.

    `recorded` says that the record is on stdout.
    """
    check = record["check"]
    if check["status"] != FAIL:
        return
    if "outputs" not in check:
        raise unrunnable.refusal(kinds.COMPILE.convert(record), recorded=recorded)
    lines = [f"  output{row['index']}: {row['detail']}" for row in check["outputs"] if row["status"] == FAIL]
    lines += [f"  {check['start']['text']}"] if "start" in check else []
    raise VerdictError(
        "the program's outputs differ from those of the model it was made from:\n" + "\n".join(lines),
        _HINT,
        recorded=recorded,
    )
