"""What a schema cannot state of comparisons and of manifests: rules of :mod:`ethosu_sdk.schema`."""

from __future__ import annotations

import collections
import contextlib

from ethosu_sdk.records import Record


def follows_its_rows(record: Record) -> list[str]:
    """Blocked by a dimension, failed by a regression; the record is what its worst comparison is."""
    found = []
    for number, row in enumerate(record["comparisons"]):
        blocks = any(part["status"] == "blocks" for part in row["dimensions"])
        parts = (part for operator in row["operators"] for part in operator["figures"])
        worse = any(part.get("status") == "regression" for part in (*row["metrics"], *parts))
        expected = "blocked" if blocks else "fail" if worse else "pass"
        if row["status"] != expected:
            found.append(f"the rows of comparison {number} say '{expected}', it says '{row['status']}'")
    words = {row["status"] for row in record["comparisons"]} | {"fail" if record["failed"] else "pass"}
    expected = next(word for word in ("blocked", "fail", "pass") if word in words)
    if record["status"] != expected:
        found.append(f"the comparisons say '{expected}', the record says '{record['status']}'")
    return found


def names_what_is_there(record: Record) -> list[str]:
    """Runs and operators that rows speak of are in the record, and a change is after - before."""
    labels = {row["label"] for row in record["subjects"]}
    found = [] if len(record["subjects"]) > 1 or record["failed"] else ["nothing is compared"]
    for comparison in record["comparisons"]:
        named = {comparison["before"], comparison["after"]}
        found += [f"there is no run {label}" for label in sorted(named - labels)]
        for row in comparison["metrics"]:
            if row.get("operator", -1) >= len(comparison["operators"]):
                found.append(f"{row['name']} is at operator {row['operator']}, which is not in the record")
        parts = (part for row in comparison["operators"] for part in row["figures"])
        for row in (*comparison["metrics"], *parts):
            if "change" in row and not _is_change(row):
                found.append(f"{row['name']} changes by {row['change']}")
    return found


def _is_change(row: Record) -> bool:
    before, after = row.get("before"), row.get("after")
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return False
    with contextlib.suppress(OverflowError):  # a whole number that no float holds
        return bool(row["change"] == after - before)
    return False


def paths_are_listed_once(record: Record) -> list[str]:
    counts = collections.Counter(row["path"] for row in record["files"])
    return [f"{path[:80]!r} is listed twice" for path, count in counts.items() if count > 1]
