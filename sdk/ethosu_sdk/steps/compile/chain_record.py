"""The `chain` of a compilation's record: every comparison from the model that was written to the program that was
executed; and its line for people."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import convert

from ethosu_sdk import aot
from ethosu_sdk.aot.facts import chain
from ethosu_sdk.aot.facts.chain import GRAPH, PREPARED, QUANTISED
from ethosu_sdk.errors import VerdictError
from ethosu_sdk.records import Record
from ethosu_sdk.records.compile import (
    Chain,
    Check,
    Link,
    LinkName,
    LinkOutput,
    LinkVerdict,
    NoisyLayer,
    SampleOrigin,
)
from ethosu_sdk.steps.compile.check_record import FAIL, PASS, UNAVAILABLE

LOW_DB = 10.0  # below it, a quantised model is worth a warning even if every layer is explained


def extend(
    record: Record, facts: aot.ChainFacts | None, executed: Sequence[aot.LinkedOutput], least_db: float | None
) -> Record:
    """`record`, whose check is there, with the chain; the status fails below `least_db`."""
    links = () if facts is None else tuple(_link(row) for row in facts.links)
    links = (*links, _executed(convert(record["check"], Check), executed))
    ratio = _least_db(links)
    found = Chain(
        samples=() if facts is None else convert(facts.samples, tuple[SampleOrigin, ...]),
        links=links,
        noisy_layers=() if facts is None else tuple(map(_noisy, facts.noisy)),
        line=line(links, str(record["options"].get("quantize", "quantised"))),
        min_sqnr_db=least_db,
    )
    extended = {**record, "chain": found.to_json()}
    if least_db is not None and (ratio is None or ratio < least_db) and _has(links, QUANTISED):
        return {**extended, "status": FAIL}
    if ratio is not None and ratio < LOW_DB:
        return {**extended, "warnings": [*record["warnings"], _warning(found, ratio)]}
    return extended


def _link(row: aot.Link) -> Link:
    link = convert(row.name, LinkName)
    if row.unavailable and not row.outputs:
        return Link(link=link, status=UNAVAILABLE, reason=row.unavailable)
    return Link(
        link=link,
        status=PASS,
        verdict=convert(row.verdict, LinkVerdict),
        outputs=_outputs(row.outputs),
        layers=row.layers,
        reason=row.unavailable or None,
    )


def _executed(check: Check, outputs: Sequence[aot.LinkedOutput]) -> Link:
    if check.outputs is None:
        return Link(
            link="executed", status=FAIL if check.status == FAIL else UNAVAILABLE, reason=check.reason
        )
    passed = check.status == PASS
    equal = all(row.equal == row.elements for row in outputs)
    return Link(
        link="executed",
        status=PASS if passed else FAIL,
        verdict="equal" if equal else "explained" if passed else "different",
        outputs=_outputs(outputs),
    )


def _outputs(rows: Sequence[aot.LinkedOutput]) -> tuple[LinkOutput, ...]:
    return tuple(
        LinkOutput(
            index=row.index,
            name=row.name,
            elements=row.elements,
            equal=row.equal,
            largest=row.largest,
            sqnr_db=row.sqnr_db,
        )
        for row in rows
    )


def _noisy(row: chain.NoisyLayer) -> NoisyLayer:
    return NoisyLayer(operator=row.operator, place=row.place, sqnr_db=row.sqnr_db)


def _has(links: Sequence[Link], name: str) -> bool:
    return any(row.link == name for row in links)


def _least_db(links: Sequence[Link]) -> float | None:
    """The lowest ratio of an output of the quantised model to the float one; None when no output has one."""
    rows = (part for row in links if row.link == QUANTISED for part in row.outputs or ())
    return min((part.sqnr_db for part in rows if part.sqnr_db is not None), default=None)


def _warning(found: Chain, ratio: float) -> str:
    layers = "; ".join(
        f"{row.operator}{f' ({row.place})' if row.place is not None else ''} {row.sqnr_db:.1f} dB"
        for row in found.noisy_layers
    )
    return (
        f"The quantised model is far from the float one: {ratio:.1f} dB, below {LOW_DB:.0f} dB. Each layer's error "
        "is explained by its own steps, as random weights or too few calibration samples give."
        + (f" The noisiest layers by themselves: {layers}." if layers else "")
    )


def of(record: Record) -> str:
    """The chain of a record in a line; empty when the comparison was left out."""
    return str(record.get("chain", {}).get("line", ""))


def line(links: Sequence[Link], quantised: str) -> str:
    """The chain in a line: ``float → graph equal · → int8 31.4 dB · → executed equal``."""
    words = [_words(row, quantised) for row in links if row.link != PREPARED or row.status == FAIL]
    start = "float → " if _has(links, GRAPH) else "given → "
    return start + " · → ".join(words)


def _words(link: Link, quantised: str) -> str:
    name = quantised if link.link == QUANTISED else link.link
    if link.outputs is None:
        return f"{name} {'failed' if link.status == FAIL else 'not compared'}"
    rows = link.outputs
    equal = all(row.equal == row.elements for row in rows)
    if equal or link.link == GRAPH:
        return f"{name} equal"
    ratios = [row.sqnr_db for row in rows if row.sqnr_db is not None]
    if ratios:
        low = f" (below {LOW_DB:.0f} dB)" if link.link == QUANTISED and min(ratios) < LOW_DB else ""
        words = f"{min(ratios):.1f} dB{low}"
    else:
        words = f"{sum(row.equal for row in rows):,} of {sum(row.elements for row in rows):,} elements equal"
    return f"{name} {words}" + (" (different)" if link.status == FAIL else "")


def raise_if_low(record: Record, method: str = "", *, recorded: bool) -> None:
    """VerdictError when the quantised model is farther from the float one than ``--min-sqnr`` allows; `record` is
    that of the program, or its part for a method; `method` begins the message."""
    if "chain" not in record:
        return
    compared = convert(record["chain"], Chain)
    ratio, least_db = _least_db(compared.links), compared.min_sqnr_db
    if least_db is None or (ratio is not None and ratio >= least_db) or not _has(compared.links, QUANTISED):
        return
    found = "no output has a signal-to-noise ratio" if ratio is None else f"{ratio:.1f} dB"
    raise VerdictError(
        f"{method}the quantised model is farther from the float model than --min-sqnr {least_db:g} allows: {found}",
        "`ethosu-sdk debug` shows which layer loses most; all files were written",
        recorded=recorded,
    )
