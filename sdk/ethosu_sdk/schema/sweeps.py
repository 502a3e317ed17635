"""What a schema cannot state of sweeps: rules of :mod:`ethosu_sdk.schema`."""

from __future__ import annotations

from collections import Counter

from ethosu_sdk.records import Record

_PASS, _REFUSED, _NOT_RUN = "pass", "refused", "not run"


def counts_every_cell(record: Record) -> list[str]:
    """Each cell of the table is counted and judged once, and the status follows."""
    counted = record["cells"]
    total = sum(counted.values())
    found = []
    if not total == record["table"]["rows"] == record["plan"]["cells"]:
        found.append(f"{total} cells are counted, the table has {record['table']['rows']} rows")
    bad = sum(count for name, count in counted.items() if name not in (_PASS, _REFUSED, _NOT_RUN))
    verdict = record["verdict"]
    judged = sum(count for name, count in verdict["counts"].items() if name != "cells")
    if not total == judged == verdict["counts"]["cells"] == len(verdict["cells"]):
        found.append(f"the verdict is on {judged} cells, {total} are counted")
    broken = verdict["constraints"] and verdict["status"] == "fail"
    expected = "fail" if bad or broken or not counted[_PASS] else "pass"
    if counted[_NOT_RUN]:
        expected = "incomplete"
    if record["status"] != expected:
        found.append(f"the cells say '{expected}', the record says '{record['status']}'")
    return found


def has_an_error_or_passes(record: Record) -> list[str]:
    """A cell that did not pass says why, and one that did has nothing to say."""
    if (record["status"] == _PASS) == ("error" in record):
        return [
            f"the status is '{record['status']}', and there is {'an' if 'error' in record else 'no'} error"
        ]
    return []


def comparison_follows_its_cells(record: Record) -> list[str]:
    """Counts and status of a comparison of sweeps are those of its cells."""
    counted = Counter(row["status"] for row in record["cells"])
    found = [
        f"{count} cells are counted as '{name}', {counted[name]} are"
        for name, count in record["counts"].items()
        if count != counted[name]
    ]
    expected = (
        "blocked" if counted["blocked"] else "fail" if counted["fail"] or counted["missing"] else "pass"
    )
    if record["status"] != expected:
        found.append(f"the cells say '{expected}', the record says '{record['status']}'")
    return found
