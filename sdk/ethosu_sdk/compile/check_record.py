"""The `check` and the `chain` of a compilation's record, for each of its methods, and their words for people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy.typing as npt
from msgspec import convert

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.errors import InputError, SdkError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.compile_facts import CONVERTED_LINK, GRAPH_LINK, PREPARED_LINK, QUANTISED_LINK
from ethosu_sdk.compile.distance import Distance
from ethosu_sdk.compile.refused_operators import refusal_of
from ethosu_sdk.records import common, compile as record_parts, provenance
from ethosu_sdk.records.common import SourceLine

PASS: Final = "pass"
FAIL: Final = "fail"
UNAVAILABLE: Final = "unavailable"
LEFT_OUT: Final = "left-out"
LOW_DB = 10.0  # below it, a quantised model is worth a warning even if every layer is explained


@dataclass(frozen=True)
class Checked:
    """What a check found: the distance of each output; or the failure of the program; or why nothing is known."""

    executed: Sequence[npt.NDArray[Any]] = ()
    distances: Sequence[Distance] = ()
    facts: compile_facts.CheckFacts | None = None
    runner: Path | None = None
    failure: SdkError | None = None
    unavailable: str = ""
    start: record_parts.Start | None = None
    linked: Sequence[record_parts.LinkOutput] = ()
    dialect: record_parts.Dialect | None = None
    readings: tuple[record_parts.Reading, ...] | None = None

    @property
    def explained(self) -> bool:
        same = self.dialect is None or self.dialect.equal == self.dialect.elements
        return same and all(row.explained for row in self.distances)


def check_left_out(record: Record, reason: str = "--no-check") -> Record:
    """`record`, with the check marked as left out."""
    check = {"check": record_parts.Check(status=LEFT_OUT, reason=reason).to_json()}
    others = [{**row, **check} for row in record.get("other_methods", ())]
    return {**record, **check, **({"other_methods": others} if others else {})}


def extend_with_check(record: Record, checked: Checked, seconds: float) -> Record:
    """`record` with the check, its time, and the status that follows."""
    check = _check(checked)
    extended = {**record, "check_time_s": round(seconds, 3), "check": check.to_json()}
    if check.status == UNAVAILABLE:
        warning = f"The program was not executed, so nothing is known of its outputs: {check.reason}."
        return {**extended, "warnings": [*record["warnings"], warning]}
    if check.status == FAIL:
        extended["status"] = FAIL
    if checked.runner is None:
        return extended
    inputs = [*record["provenance"]["inputs"], provenance.file_entry("host-runner", checked.runner)]
    gaps = [
        {"path": f"/check/outputs/{index}/sqnr_db", "reason": _no_ratio(row)}
        for index, row in enumerate(checked.distances)
        if not math.isfinite(row.sqnr_db)
    ]
    return {
        **extended,
        "provenance": {**record["provenance"], "inputs": inputs},
        "unavailable": [*record["unavailable"], *gaps],
    }


def _check(checked: Checked) -> record_parts.Check:
    if checked.unavailable:
        return record_parts.Check(status=UNAVAILABLE, reason=checked.unavailable)
    if checked.failure is not None:
        return record_parts.Check(status=FAIL, reason=checked.failure.message)
    assert checked.facts is not None
    rows = enumerate(zip(checked.executed, checked.distances, strict=True))
    start = checked.start
    if start is not None and start.source is not None:
        start = msgspec.structs.replace(start, source=source_line(start.source))
    return record_parts.Check(
        status=PASS if checked.explained else FAIL,
        executor=executor_words(),
        samples=checked.facts.samples,
        trials=checked.facts.trials,
        stateful=checked.facts.stateful,
        outputs=tuple(_output(index, array, row) for index, (array, row) in rows),
        dialect=checked.dialect,
        readings=checked.readings,
        start=start,
    )


def executor_words() -> str:
    """What executes a `.pte` where it is checked or evaluated."""
    version = tools.package_version("executorch") or "unknown"
    return f"ExecuTorch {version}'s runtime on this machine, delegates on the SDK's NPU model"


def _output(index: int, array: npt.NDArray[Any], found: Distance) -> record_parts.CheckedOutput:
    return record_parts.CheckedOutput(
        index=index,
        status=PASS if found.explained else FAIL,
        detail=found.detail,
        sha256=filesystem.sha256_bytes(array.tobytes()),
        elements=found.elements,
        equal=found.equal,
        left_out=found.left_out,
        not_finite=found.not_finite,
        step=found.step,
        rms=found.rms,
        largest=found.largest,
        differing=found.differing,
        ties_up=found.ties_up,
        sqnr_db=found.sqnr_db if math.isfinite(found.sqnr_db) else None,
    )


def _no_ratio(found: Distance) -> str:
    if found.differing is not None:
        return "the output holds integers or truth values, whose differences mean nothing"
    return "there is no noise" if found.sqnr_db > 0 else "the reference is zero everywhere"


def source_line(line: SourceLine) -> SourceLine:
    """A line without its function and package, which records of checks and layers do not have."""
    return msgspec.structs.replace(line, function=None, package=None)


def extend_with_chain(
    record: Record,
    facts: compile_facts.ChainFacts | None,
    executed: Sequence[record_parts.LinkOutput],
    least_db: float | None,
) -> Record:
    """`record`, whose check is there, with the chain from model to executed program; it fails below `least_db`."""
    links = () if facts is None else facts.links
    links = (*links, _executed(convert(record["check"], record_parts.Check), executed))
    ratio = _least_db(links)
    # Such as ``float → graph equal · → int8 31.4 dB · → executed equal``.
    quantised = str(record["options"].get("quantize", "quantised"))
    words = [_link_words(row, quantised) for row in links if row.link != PREPARED_LINK or row.status == FAIL]
    start = "float" if any(row.link == GRAPH_LINK for row in links) else "given"
    start = facts.start if facts is not None and facts.start else start
    found = record_parts.Chain(
        samples=() if facts is None else facts.samples,
        links=links,
        noisy_layers=() if facts is None else facts.noisy,
        line=f"{start} → " + " · → ".join(words),
        min_sqnr_db=least_db,
    )
    extended = {**record, "chain": found.to_json()}
    if _is_low(found):
        return {**extended, "status": FAIL}
    if ratio is not None and ratio < LOW_DB:
        return {**extended, "warnings": [*record["warnings"], _low_warning(found, ratio)]}
    return extended


def _executed(check: record_parts.Check, outputs: Sequence[record_parts.LinkOutput]) -> record_parts.Link:
    if check.outputs is None:
        return record_parts.Link(
            link="executed", status=FAIL if check.status == FAIL else UNAVAILABLE, reason=check.reason
        )
    passed = check.status == PASS
    equal = all(row.equal == row.elements for row in outputs)
    return record_parts.Link(
        link="executed",
        status=PASS if passed else FAIL,
        verdict="equal" if equal else "explained" if passed else "different",
        outputs=tuple(outputs),
    )


def _least_db(links: Sequence[record_parts.Link]) -> float | None:
    rows = (part for row in links if row.link == QUANTISED_LINK for part in row.outputs or ())
    return min((part.sqnr_db for part in rows if part.sqnr_db is not None), default=None)


def _is_low(chain: record_parts.Chain) -> bool:
    ratio = _least_db(chain.links)
    if chain.min_sqnr_db is None or all(row.link != QUANTISED_LINK for row in chain.links):
        return False
    return ratio is None or ratio < chain.min_sqnr_db


def _low_warning(found: record_parts.Chain, ratio: float) -> str:
    layers = "; ".join(
        f"{row.operator}{f' ({row.place})' if row.place is not None else ''} {row.sqnr_db:.1f} dB"
        for row in found.noisy_layers
    )
    return (
        f"The quantised model is far from the float one: {ratio:.1f} dB, below {LOW_DB:.0f} dB. Each layer's error "
        "is explained by its own steps, as random weights or too few calibration samples give."
        + (f" The noisiest layers by themselves: {layers}." if layers else "")
    )


def chain_words(record: Record) -> str:
    """The chain of a record in a line; empty when the comparison was left out."""
    return str(record.get("chain", {}).get("line", ""))


def _link_words(link: record_parts.Link, quantised: str) -> str:
    name = {QUANTISED_LINK: quantised, CONVERTED_LINK: "float"}.get(link.link, link.link)
    if link.outputs is None:
        return f"{name} {'failed' if link.status == FAIL else 'not compared'}"
    rows = link.outputs
    equal = all(row.equal == row.elements for row in rows)
    if equal or link.link in (CONVERTED_LINK, GRAPH_LINK):
        return f"{name} equal"
    ratios = [row.sqnr_db for row in rows if row.sqnr_db is not None]
    if ratios:
        low = f" (below {LOW_DB:.0f} dB)" if link.link == QUANTISED_LINK and min(ratios) < LOW_DB else ""
        words = f"{min(ratios):.1f} dB{low}"
    else:
        words = f"{sum(row.equal for row in rows):,} of {sum(row.elements for row in rows):,} elements equal"
    return f"{name} {words}" + (" (different)" if link.status == FAIL else "")


def extend_with_methods(
    record: Record, number: int, facts: compile_facts.MethodFacts, checked: Checked, least_db: float | None
) -> Record:
    """`record` with the check and the chain of the other method `number`, and the status that follows."""
    empty = {"status": "pass", "warnings": [], "unavailable": [], "provenance": {"inputs": []}}
    part = extend_with_check({**empty, "options": record["options"]}, checked, 0.0)
    part = extend_with_chain(part, facts.chain, checked.linked, least_db)
    methods = list(record["other_methods"])
    methods[number] = {**methods[number], "check": part["check"], "chain": part["chain"]}
    gaps = [{**row, "path": f"/other_methods/{number}{row['path']}"} for row in part["unavailable"]]
    return {
        **record,
        "status": "fail" if part["status"] == "fail" else record["status"],
        "other_methods": methods,
        "warnings": [*record["warnings"], *(f"Method '{facts.name}': {text}" for text in part["warnings"])],
        "unavailable": [*record["unavailable"], *gaps],
    }


def each_method(record: Record) -> Iterator[tuple[str, Record]]:
    """The parts of `record` that are of one method, the whole record for the first, and words to put before what is
    said of it: none where there is only one."""
    others = record.get("other_methods", ())
    yield (f"method '{record['model']['entry']}', " if others else ""), record
    for row in others:
        yield f"method '{row['name']}', ", row


def does_not_run(record: Record) -> bool:
    """Whether the check found a program, or a method of it, that cannot be executed."""
    checks = [part["check"] for _, part in each_method(record)]
    return any(row["status"] == FAIL and "outputs" not in row for row in checks)


def check_line(record: Record) -> str:
    check = record["check"]
    if check["status"] in (UNAVAILABLE, LEFT_OUT):
        return f"not executed: {check['reason']}"
    seconds = f"({record['check_time_s']:.1f} s)" if "check_time_s" in record else ""
    if "outputs" not in check:
        return f"failed: {check['reason']} {seconds}".rstrip()
    rows = check["outputs"]
    names = [f"output{row['index']}: " if len(rows) > 1 else "" for row in rows]
    words = [name + row["detail"] for name, row in zip(names, rows, strict=True)]
    if "readings" in check and check["status"] == PASS:
        words = []  # an interpreter has the same bits everywhere
    return f"{'; '.join([*words, *_dialect(check), *_readings(check)])} {seconds}".rstrip()


def _dialect(check: Record) -> list[str]:
    if "dialect" not in check:
        return []
    equal, elements = check["dialect"]["equal"], check["dialect"]["elements"]
    if equal == elements:
        return ["the same bits as ExecuTorch's references of cortex_m"]
    return [f"{elements - equal:,} of {elements:,} elements differ from ExecuTorch's references of cortex_m"]


def _readings(check: Record) -> list[str]:
    """What each interpreter of the user's .tflite says of the program."""
    found = []
    for row in check.get("readings", ()):
        name = row["interpreter"] + (f" where {row['rounding']}" if "rounding" in row else "")
        if "reason" in row:
            found.append(f"{name}: not compared, {row['reason']}")
        elif row["equal"] == row["elements"]:
            found.append(f"{name}: equal")
        else:
            count = f"{row['elements'] - row['equal']:,} of {row['elements']:,} elements differ"
            found.append(f"{name}: {count}, by {row['largest']:.3g} steps at most")
    return found


def raise_if_failed(record: Record, method: str = "", *, recorded: bool) -> None:
    """VerdictError for outputs that rounding does not explain, InputError for a program that does not run. `method`
    begins the message; `recorded` says that the record is on stdout."""
    check = record["check"]
    if check["status"] != FAIL:
        return
    if "outputs" not in check:
        operators = convert(record["cpu_operators"], tuple[record_parts.CpuOperator, ...])
        raise _unrunnable(convert(check, record_parts.Check), operators, method, recorded=recorded)
    lines = [f"  output{row['index']}: {row['detail']}" for row in check["outputs"] if row["status"] == FAIL]
    lines += [f"  {words}" for words in (*_dialect(check), *_readings(check))]
    lines += [f"  {check['start']['text']}"] if "start" in check else []
    raise VerdictError(
        f"{method}the program's outputs differ from those of the model it was made from:\n"
        + "\n".join(lines),
        "all files were written; compile.json has the figures under check; --no-check skips the comparison",
        recorded=recorded,
    )


_OPERATOR = re.compile(r"\b[A-Za-z_]\w*::\w+(\.\w+)?")


def _unrunnable(
    check: record_parts.Check, operators: Sequence[record_parts.CpuOperator], method: str, *, recorded: bool
) -> InputError:
    """The error for a program that was made and does not run: which operator it is, at which line, and what to do."""
    reason = check.reason or ""
    name = _OPERATOR.search(reason)
    rows = [row for row in operators if name and row.name == name[0]]
    text = f"{method}the program that was made does not run: {reason}"
    hint = (
        "the NPU's commands are wrong: --no-delegate keeps all operators on the CPU; a `quantizer` in the "
        "model's file keeps single operators there (docs/guide/model-files.md)"
    )
    if rows:
        hint = "the CPU's kernel refuses the call: use other operators, or compute it outside of the model"
        places = {common.source_place(site.source) for site in rows[0].sites if site.source is not None}
        text += f" (called at {'; '.join(sorted(places))})" if places else ""
        refusal = refusal_of(rows[0].name)
        if refusal:
            text, hint = f"{text}; {refusal.reason}", refusal.way_out
    return InputError(text, hint, recorded=recorded)


def raise_if_low(record: Record, method: str = "", *, recorded: bool) -> None:
    """VerdictError when the quantised model is farther from the float one than ``--min-sqnr`` allows; as above."""
    if "chain" not in record:
        return
    chain = convert(record["chain"], record_parts.Chain)
    if not _is_low(chain):
        return
    ratio = _least_db(chain.links)
    found = "no output has a signal-to-noise ratio" if ratio is None else f"{ratio:.1f} dB"
    raise VerdictError(
        f"{method}the quantised model is farther from the float model than --min-sqnr {chain.min_sqnr_db:g} allows: "
        f"{found}",
        "`ethosu-sdk debug` shows which layer loses most; all files were written",
        recorded=recorded,
    )
