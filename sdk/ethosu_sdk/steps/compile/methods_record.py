"""The other methods of a compilation's record: what the check of each found."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk import aot
from ethosu_sdk.records import Record
from ethosu_sdk.steps.compile import chain_record, check_record
from ethosu_sdk.steps.compile.check_record import Checked


def extend(
    record: Record, number: int, facts: aot.MethodFacts, checked: Checked, least_db: float | None
) -> Record:
    """`record` with the check and the chain of the other method `number`, and the status that follows."""
    empty = {"status": "pass", "warnings": [], "unavailable": [], "provenance": {"inputs": []}}
    part = check_record.extend({**empty, "options": record["options"]}, checked, 0.0)
    part = chain_record.extend(part, facts.chain, checked.linked, least_db)
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


def each(record: Record) -> Iterator[tuple[str, Record]]:
    """The parts of `record` that are of one method, the whole record for the first, and words to put before what is
    said of it: none where there is only one."""
    others = record.get("other_methods", ())
    yield (f"method '{record['model']['entry']}', " if others else ""), record
    for row in others:
        yield f"method '{row['name']}', ", row
