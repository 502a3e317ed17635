"""Operators on the CPU: the modules that `advise` puts in their place are delegated, and compute the same."""

from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.integration.advise.programs import AS_WRITTEN, MIXED, REPLACED, Advised, advised, compiled

pytestmark = [pytest.mark.torch]

LEAST_DB = 20.0  # of the outputs with the replacements, in eight bits; without one module 13 at most


@pytest.fixture(scope="module")
def mixed(place: Path) -> Advised:
    """The network with its operators on the CPU."""
    (place / "mixed.py").write_text(MIXED, encoding="utf-8")
    return advised("mixed.py", place, "mixed")


def _calls(run: Advised) -> int:
    return sum(row["runs_on"] == "CPU" for row in run.profile["operations"])


def test_replaced_operators(mixed: Advised, place: Path) -> None:
    found = mixed.find("replaced-operator")
    assert {row["where"] for row in found} == set(REPLACED)
    lines = [line for row in found for line in row["code"]]
    (place / "replaced.py").write_text("\n".join([MIXED, *lines, ""]), encoding="utf-8")
    replaced = advised("replaced.py", place, "replaced")
    assert replaced.find("replaced-operator") == []
    for metric, counts in (
        ("delegates", [len(run.profile["delegates"]) for run in (mixed, replaced)]),
        ("CPU operators", [_calls(run) for run in (mixed, replaced)]),
    ):
        changes = [change for row in found for change in row["gains"] if change["metric"] == metric]
        assert {change["before"] for change in changes} == {counts[0]}
        assert counts[1] == counts[0] - sum(change["before"] - change["after"] for change in changes), metric
    before, after = (
        npz.read_npz(next(run.folder.glob("*.io.npz")))["output0"].astype(np.float64)
        for run in (mixed, replaced)
    )
    assert np.sum((after - before) ** 2) <= np.sum(before**2) * 10 ** (-LEAST_DB / 10)


def test_nothing_is_replaced_where_all_is_delegated(plain: Advised) -> None:
    assert plain.find("replaced-operator") == []
    assert plain.find("quantise") == []


def test_quantise(place: Path) -> None:
    run = advised("net.py", place, "float", "--quantize", "none", AS_WRITTEN)
    (advice,) = run.advice["advice"]
    assert (advice["rule"], run.profile["delegates"]) == ("quantise", [])
    before, after = run.expected("quantise", "operators that compute on the CPU")
    done = advised(compiled(place, advice["command"], "quantised"), place, "quantised")
    computing = [row for row in done.profile["operations"] if row["runs_on"] == "CPU"]
    assert (before, after) == (_calls(run), len([row for row in computing if "quantize" not in row["name"]]))
