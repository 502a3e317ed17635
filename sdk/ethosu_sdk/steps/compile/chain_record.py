"""The `chain` of a compilation's record: every comparison from the model that was written to the program that was
executed; and its line for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ethosu_sdk import aot
from ethosu_sdk.aot.facts.chain import EQUAL, EXECUTED, EXPLAINED, GRAPH, PREPARED, QUANTISED
from ethosu_sdk.errors import VerdictError
from ethosu_sdk.records import Record
from ethosu_sdk.steps.compile.compile_record import known

PASS, FAIL, UNAVAILABLE = "pass", "fail", "unavailable"
LOW_DB = 10.0  # below it, a quantised model is worth a warning even if every layer is explained


def extend(
    record: Record, facts: aot.ChainFacts | None, executed: Sequence[aot.LinkedOutput], least_db: float | None
) -> Record:
    """`record`, whose check is there, with the chain; the status fails below `least_db`."""
    check = record["check"]
    links = [] if facts is None else [_link(row) for row in facts.links]
    links.append(_executed(check, executed))
    ratio = _least_db(links)
    chain: Record = {
        "samples": [] if facts is None else list(facts.samples),
        "links": links,
        "noisy_layers": [] if facts is None else [known(asdict(row)) for row in facts.noisy],
    }
    chain["line"] = line(chain, str(record["options"].get("quantize", "quantised")))
    extended = {**record, "chain": chain}
    if least_db is not None:
        chain["min_sqnr_db"] = least_db
    if least_db is not None and (ratio is None or ratio < least_db) and _has(links, QUANTISED):
        return {**extended, "status": FAIL}
    if ratio is not None and ratio < LOW_DB:
        return {**extended, "warnings": [*record["warnings"], _warning(chain, ratio)]}
    return extended


def _link(row: aot.Link) -> Record:
    if row.unavailable and not row.outputs:
        return {"link": row.name, "status": UNAVAILABLE, "reason": row.unavailable}
    part: Record = {
        "link": row.name,
        "status": PASS,
        "verdict": row.verdict,
        "outputs": _outputs(row.outputs),
    }
    if row.layers is not None:
        part["layers"] = row.layers
    return part | ({"reason": row.unavailable} if row.unavailable else {})


def _executed(check: Record, outputs: Sequence[aot.LinkedOutput]) -> Record:
    if "outputs" not in check:
        status = FAIL if check["status"] == FAIL else UNAVAILABLE
        return {"link": EXECUTED, "status": status, "reason": check["reason"]}
    equal = all(row.equal == row.elements for row in outputs)
    return {
        "link": EXECUTED,
        "status": check["status"],
        "verdict": EQUAL if equal else EXPLAINED if check["status"] == PASS else "different",
        "outputs": _outputs(outputs),
    }


def _outputs(rows: Sequence[aot.LinkedOutput]) -> list[Record]:
    return [known(asdict(row)) for row in rows]


def _has(links: Sequence[Record], name: str) -> bool:
    return any(row["link"] == name for row in links)


def _least_db(links: Sequence[Record]) -> float | None:
    """The lowest ratio of an output of the quantised model to the float one; None when no output has one."""
    rows = (row for row in links if row["link"] == QUANTISED)
    ratios = [part["sqnr_db"] for row in rows for part in row.get("outputs", ()) if "sqnr_db" in part]
    return min(ratios, default=None)


def _warning(chain: Record, ratio: float) -> str:
    layers = "; ".join(
        f"{row['operator']}{' (' + row['place'] + ')' if 'place' in row else ''} {row['sqnr_db']:.1f} dB"
        for row in chain["noisy_layers"]
    )
    return (
        f"The quantised model is far from the float one: {ratio:.1f} dB, below {LOW_DB:.0f} dB. Each layer's error "
        "is explained by its own steps, as random weights or too few calibration samples give."
        + (f" The noisiest layers by themselves: {layers}." if layers else "")
    )


def of(record: Record) -> str:
    """The chain of a record in a line; empty when the comparison was left out."""
    return str(record.get("chain", {}).get("line", ""))


def line(chain: Record, quantised: str) -> str:
    """The chain in a line: ``float → graph equal · → int8 31.4 dB · → executed equal``."""
    words = [
        _words(row, quantised) for row in chain["links"] if row["link"] != PREPARED or row["status"] == FAIL
    ]
    start = "float → " if _has(chain["links"], GRAPH) else "given → "
    return start + " · → ".join(words)


def _words(link: Record, quantised: str) -> str:
    name = quantised if link["link"] == QUANTISED else link["link"]
    if "outputs" not in link:
        return f"{name} {'failed' if link['status'] == FAIL else 'not compared'}"
    rows = link["outputs"]
    equal = all(row["equal"] == row["elements"] for row in rows)
    if equal or link["link"] == GRAPH:
        return f"{name} equal"
    ratios = [row["sqnr_db"] for row in rows if "sqnr_db" in row]
    if ratios:
        low = f" (below {LOW_DB:.0f} dB)" if link["link"] == QUANTISED and min(ratios) < LOW_DB else ""
        words = f"{min(ratios):.1f} dB{low}"
    else:
        words = f"{sum(row['equal'] for row in rows):,} of {sum(row['elements'] for row in rows):,} elements equal"
    return f"{name} {words}" + (" (different)" if link["status"] == FAIL else "")


def raise_if_low(record: Record, *, recorded: bool) -> None:
    """VerdictError when the quantised model is farther from the float one than ``--min-sqnr`` allows."""
    chain = record.get("chain", {})
    if "min_sqnr_db" not in chain:
        return
    ratio = _least_db(chain["links"])
    if (ratio is not None and ratio >= chain["min_sqnr_db"]) or not _has(chain["links"], QUANTISED):
        return
    found = "no output has a signal-to-noise ratio" if ratio is None else f"{ratio:.1f} dB"
    raise VerdictError(
        "the quantised model is farther from the float model than "
        f"--min-sqnr {chain['min_sqnr_db']:g} allows: {found}",
        "`ethosu-sdk debug` shows which layer loses most; all files were written",
        recorded=recorded,
    )
