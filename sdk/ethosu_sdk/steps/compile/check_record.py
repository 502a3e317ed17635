"""The `check` of a compilation's record, and its words for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
from msgspec import convert

from ethosu_sdk import aot, provenance
from ethosu_sdk.aot.comparison import distance
from ethosu_sdk.errors import SdkError, VerdictError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record
from ethosu_sdk.records.common import SourceLine, Unavailable
from ethosu_sdk.records.compile import (
    Check,
    CheckedOutput,
    CpuOperator,
    Dialect,
    Figure,
    Start,
    StartTosa,
    TiesUp,
)
from ethosu_sdk.steps.compile import unrunnable

PASS: Literal["pass"] = "pass"
FAIL: Literal["fail"] = "fail"
UNAVAILABLE: Literal["unavailable"] = "unavailable"
LEFT_OUT: Literal["left-out"] = "left-out"
_HINT = "all files were written; compile.json has the figures under check; --no-check skips the comparison"


@dataclass(frozen=True)
class Checked:
    """What a check found: the distance of each output; or the failure of the program; or why nothing is known."""

    executed: Sequence[npt.NDArray[Any]] = ()
    distances: Sequence[distance.Distance] = ()
    facts: aot.CheckFacts | None = None
    runner: Path | None = None
    failure: SdkError | None = None
    unavailable: str = ""
    start: aot.StartFacts | None = None
    linked: Sequence[aot.LinkedOutput] = ()
    dialect: Dialect | None = None

    @property
    def explained(self) -> bool:
        """Whether nothing differs that must not."""
        same = self.dialect is None or self.dialect.equal == self.dialect.elements
        return same and all(row.explained for row in self.distances)


def left_out(record: Record) -> Record:
    """`record`, with the check marked as left out."""
    check = {"check": Check(status=LEFT_OUT, reason="--no-check").to_json()}
    others = [{**row, **check} for row in record.get("other_methods", ())]
    return {**record, **check, **({"other_methods": others} if others else {})}


def extend(record: Record, checked: Checked, seconds: float) -> Record:
    """`record` with the check, its time, and the status that follows."""
    check, gaps = _check(checked)
    extended = {**record, "check_time_s": round(seconds, 3), "check": check.to_json()}
    if check.status == UNAVAILABLE:
        warning = f"The program was not executed, so nothing is known of its outputs: {check.reason}."
        return {**extended, "warnings": [*record["warnings"], warning]}
    if check.status == FAIL:
        extended["status"] = FAIL
    if checked.runner is None:
        return extended
    inputs = [*record["provenance"]["inputs"], provenance.file_entry("host-runner", checked.runner)]
    return {
        **extended,
        "provenance": {**record["provenance"], "inputs": inputs},
        "unavailable": [*record["unavailable"], *(row.to_json() for row in gaps)],
    }


def _check(checked: Checked) -> tuple[Check, list[Unavailable]]:
    """The check, and the members that it lacks with the reasons."""
    if checked.unavailable:
        return Check(status=UNAVAILABLE, reason=checked.unavailable), []
    if checked.failure is not None:
        return Check(status=FAIL, reason=checked.failure.message), []
    assert checked.facts is not None
    rows = enumerate(zip(checked.executed, checked.distances, strict=True))
    outputs = [_output(index, array, row) for index, (array, row) in rows]
    version = provenance.package_version("executorch") or "unknown"
    check = Check(
        status=PASS if checked.explained else FAIL,
        executor=f"ExecuTorch {version}'s runtime on this machine, delegates on the SDK's NPU model",
        samples=checked.facts.samples,
        trials=checked.facts.trials,
        stateful=checked.facts.stateful,
        outputs=tuple(outputs),
        dialect=checked.dialect,
        start=None if checked.start is None else _start(checked.start),
    )
    gaps = [
        Unavailable(path=f"/check/outputs/{index}/sqnr_db", reason=_no_ratio(row))
        for index, row in enumerate(checked.distances)
        if outputs[index].sqnr_db is None
    ]
    return check, gaps


def _output(index: int, array: npt.NDArray[Any], found: distance.Distance) -> CheckedOutput:
    near = found.ties_up
    return CheckedOutput(
        index=index,
        status=PASS if found.explained else FAIL,
        detail=found.detail,
        sha256=hashing.sha256_bytes(array.tobytes()),
        elements=found.elements,
        equal=found.equal,
        left_out=found.left_out,
        not_finite=found.not_finite,
        step=found.step,
        rms=_figure(found.rms),
        largest=_figure(found.largest),
        differing=_figure(found.differing),
        ties_up=None if near is None else TiesUp(equal=near.equal, largest=near.largest),
        sqnr_db=found.sqnr_db if math.isfinite(found.sqnr_db) else None,
    )


def _figure(found: distance.Figure | None) -> Figure | None:
    if found is None:
        return None
    return Figure(executed=found.executed, rounding=found.rounding, limit=found.limit)


def _no_ratio(found: distance.Distance) -> str:
    """Why there is no signal-to-noise ratio."""
    if found.differing is not None:
        return "the output holds integers or truth values, whose differences mean nothing"
    return "there is no noise" if found.sqnr_db > 0 else "the reference is zero everywhere"


def _start(start: aot.StartFacts) -> Start:
    return Start(
        text=start.text,
        certain=start.certain,
        tosa=StartTosa(operator=start.tosa_operator, tensor=start.tosa_tensor),
        operator=start.operator,
        source=None if start.source is None else source_line(start.source),
    )


def source_line(line: aot.SourceLine) -> SourceLine:
    """A line of the model as records have it."""
    return SourceLine(file=line.file, line=line.line, module=line.module, module_type=line.module_type)


def does_not_run(record: Record) -> bool:
    """Whether the check found a program, or a method of it, that cannot be executed."""
    parts = (record, *record.get("other_methods", ()))
    return any(row["check"]["status"] == FAIL and "outputs" not in row["check"] for row in parts)


def line(record: Record) -> str:
    """The check in a few words."""
    check = record["check"]
    if check["status"] in (UNAVAILABLE, LEFT_OUT):
        return f"not executed: {check['reason']}"
    seconds = f"({record['check_time_s']:.1f} s)" if "check_time_s" in record else ""
    if "outputs" not in check:
        return f"failed: {check['reason']} {seconds}".rstrip()
    rows = check["outputs"]
    names = [f"output{row['index']}: " if len(rows) > 1 else "" for row in rows]
    words = [name + row["detail"] for name, row in zip(names, rows, strict=True)]
    return f"{'; '.join([*words, *_dialect(check)])} {seconds}".rstrip()


def _dialect(check: Record) -> list[str]:
    """How the program compares with the references of the Cortex-M dialect, where it has such operators alone."""
    if "dialect" not in check:
        return []
    equal, elements = check["dialect"]["equal"], check["dialect"]["elements"]
    if equal == elements:
        return ["the same bits as ExecuTorch's references of cortex_m"]
    return [f"{elements - equal:,} of {elements:,} elements differ from ExecuTorch's references of cortex_m"]


def raise_if_failed(record: Record, method: str = "", *, recorded: bool) -> None:
    """VerdictError when rounding does not explain what the program gives, InputError when it does not run.

    `record` is that of the program, or its part for a method; `method` begins the message. `recorded` says that the
    record is on stdout.
    """
    check = record["check"]
    if check["status"] != FAIL:
        return
    if "outputs" not in check:
        raise unrunnable.refusal(
            convert(check, Check),
            convert(record["cpu_operators"], tuple[CpuOperator, ...]),
            method,
            recorded=recorded,
        )
    lines = [f"  output{row['index']}: {row['detail']}" for row in check["outputs"] if row["status"] == FAIL]
    lines += [f"  {words}" for words in _dialect(check)]
    lines += [f"  {check['start']['text']}"] if "start" in check else []
    raise VerdictError(
        f"{method}the program's outputs differ from those of the model it was made from:\n"
        + "\n".join(lines),
        _HINT,
        recorded=recorded,
    )
