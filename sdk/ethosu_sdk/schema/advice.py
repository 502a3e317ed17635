"""What a schema cannot state of advice: rules of :mod:`ethosu_sdk.schema`."""

from __future__ import annotations

from ethosu_sdk.records import Record


def gains_are_gains(record: Record) -> list[str]:
    """A gain is expected to become better, a cost worse, and a rule that has advice is not silent."""
    found = []
    for row in record["advice"]:
        for name, sign in (("gains", 1), ("costs", -1)):
            found += [
                f"{row['rule']}: {part['metric']} from {part['before']} to {part['after']} is not among {name}"
                for part in row[name]
                if sign * _improvement(part) <= 0
            ]
    given = {row["rule"] for row in record["advice"]}
    found += [f"{row['rule']} has advice and is silent" for row in record["silent"] if row["rule"] in given]
    return found


def _improvement(change: Record) -> float:
    step = float(change["after"] - change["before"])
    return step if change["better"] == "more" else -step
