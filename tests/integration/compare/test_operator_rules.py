"""Rules for single operators: one percent at one of them is found, named, and tolerated when a rule says so."""

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml

from ethosu_sdk.records import validation
from tests.integration.cli import sdk_ok
from tests.integration.compare.runs import Compared, Record, changed, compare
from tests.places import ROOT
from tests.records import read

SOURCE = ROOT / "schemas" / "examples" / "valid" / "profile-digits_cnn.json"
LINEAR, CONV = "7", "3"  # modules: 1,317 and 3,190 modelled cycles
PERCENT = 13  # one percent of the first
WHERE = "CONV2D (module 7, ethosu_sdk/compile/zoo/digits.py:59 in _network)"


def _grown(record: Record, module: str, cycles: int) -> None:
    """`record` with an operator that takes `cycles` more, and so does all that it is a part of."""
    row = next(row for row in record["operations"] if row.get("source", {}).get("module") == module)
    for part in (row["cycles"], record["delegates"][0]["cycles"], record["totals"]["npu"]["cycles"]):
        next(entry for entry in part if entry["source"] == "modelled")["value"] += cycles


def _compared(folder: Path, policy: str, growth: dict[str, int]) -> Compared:
    """The comparison with a profile whose modules take more cycles, by `policy`."""

    def change(record: Record) -> None:
        for module, cycles in growth.items():
            _grown(record, module, cycles)

    changed(SOURCE, folder / "after.json", change)
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    found = compare(SOURCE, "after.json", "--policy", "policy.toml", cwd=folder)
    assert validation.record_problems(found.record) == []
    return found


def _rule(pattern: str, text: str, figure: str = "cycles.*") -> str:
    return f'[operators."{pattern}"."{figure}"]\n{text}\n'


TOLERATED = {
    "kind and module": _rule("CONV2D@7", "tolerance_percent = 1.0"),
    "cycles": _rule("CONV2D@7", "tolerance = 13"),
    "kind": _rule("CONV2D", "tolerance_percent = 1.0"),
    "globs": _rule("CONV*@7*", "tolerance_percent = 1.0", "cycles.mod*"),
    "module": _rule("*@7", "tolerance_percent = 1.0", "cycles.modelled"),
    "later rules add": _rule("*", "tolerance = 0") + _rule("CONV2D@7", "tolerance_percent = 1.0"),
    "both": _rule("CONV2D@7", "tolerance_percent = 1.0") + '[metrics."profile.cycles.*"]\ntolerance = 13\n',
}
WORSE = {
    "no rule": "",
    "another module's": _rule("CONV2D@3", "tolerance_percent = 5.0"),
    "another kind's": _rule("MAX_POOL2D", "tolerance_percent = 5.0"),
    "another figure's": _rule("CONV2D@7", "tolerance_percent = 5.0", "traffic.*"),
    "shown alone": _rule("CONV2D@7", 'better = "inform"'),
}


@pytest.mark.parametrize("name", TOLERATED)
def test_one_percent_is_tolerated_where_a_rule_says_so(name: str, tmp_path: Path) -> None:
    found = _compared(tmp_path, TOLERATED[name], {LINEAR: PERCENT})
    assert (found.done.code, found.only["status"]) == (0, "pass"), found.done.err
    assert found.metric("profile.cycles.modelled")["status"] == "tolerated"
    (operator,) = found.only["operators"]
    (part,) = operator["figures"]
    assert (part["status"], part["change"], part["percent"]) == ("tolerated", PERCENT, 0.9871)
    assert "no effect" not in found.done.err


@pytest.mark.parametrize("name", WORSE)
def test_a_rule_for_something_else_tolerates_nothing(name: str, tmp_path: Path) -> None:
    found = _compared(tmp_path, WORSE[name], {LINEAR: PERCENT})
    assert (found.done.code, found.only["status"]) == (7, "fail")
    assert f"most of it at {WHERE}" in found.done.err
    assert found.metric("profile.cycles.modelled")["status"] == "regression"


@pytest.mark.parametrize(
    "text",
    [
        _rule("CONV2D@7", "tolerance_percent = 0.9"),
        _rule("CONV2D@7", "tolerance = 12"),
        # The last word of those that fit counts.
        _rule("CONV2D@7", "tolerance_percent = 5") + _rule("*@7", "tolerance_percent = 0.9"),
    ],
)
def test_what_exceeds_its_rule_is_named_with_the_operator(text: str, tmp_path: Path) -> None:
    found = _compared(tmp_path, text, {LINEAR: PERCENT})
    assert found.done.code == 7
    assert f"{WHERE}: cycles.modelled 1,317 → 1,330 cycles (modelled), +0.99 %, tolerated" in found.done.err
    (part,) = found.only["operators"][0]["figures"]
    assert part["status"] == "regression"
    sdk_ok("convert", "out", "--to", "junit", "-o", "junit.xml", cwd=tmp_path)
    failures = {
        case.name
        for suite in JUnitXml.fromstring((tmp_path / "junit.xml").read_bytes())
        for case in suite
        if case.result
    }
    assert f"A → B: {WHERE}: cycles.modelled" in failures


def test_an_operator_is_judged_although_the_sum_stays(tmp_path: Path) -> None:
    """What another operator gains does not make up for it; without a rule the sum alone counts."""
    growth = {LINEAR: PERCENT, CONV: -PERCENT}
    assert _compared(tmp_path, "", growth).done.code == 0
    found = _compared(tmp_path, _rule("*", "tolerance_percent = 0.5"), growth)
    assert found.done.code == 7
    assert f"{WHERE}: cycles.modelled" in found.done.err
    assert "module 3" not in found.done.err
    assert found.only["metrics"] == []
    assert "check    fail, by the policy: policy.toml" in found.done.out


def test_a_limit_of_the_whole_counts_beside_those_of_operators(tmp_path: Path) -> None:
    text = _rule("CONV2D", "tolerance_percent = 5") + '[metrics."profile.cycles.modelled"]\ntolerance = 12\n'
    found = _compared(tmp_path, text, {LINEAR: PERCENT})
    assert (found.done.code, found.metric("profile.cycles.modelled")["tolerated"]) == (7, 12)
    # One that says nothing of how much does not.
    text = text.replace("tolerance = 12", 'missing = "fail"')
    found = _compared(tmp_path, text, {LINEAR: PERCENT})
    assert found.done.code == 0
    row = found.metric("profile.cycles.modelled")
    assert (row["tolerated"], row["tolerated_at_operators"]) == (PERCENT, PERCENT)


def test_what_operators_without_a_rule_grow_is_not_tolerated(tmp_path: Path) -> None:
    found = _compared(tmp_path, _rule("CONV2D@7", "tolerance_percent = 1"), {LINEAR: PERCENT, CONV: 1})
    assert found.done.code == 7
    row = found.metric("profile.cycles.modelled")
    assert (row["change"], row["tolerated"], row["status"]) == (PERCENT + 1, PERCENT, "regression")


def test_patterns_that_fit_nothing_are_named(tmp_path: Path) -> None:
    text = _rule("CONV2D@8", "tolerance = 1") + '[metrics."profile.traffic.Ram.*"]\ntolerance = 1\n'
    found = _compared(tmp_path, text, {})
    assert found.done.code == 0
    assert (
        "the policy's 'CONV2D@8' has no effect: it fits no operator of these runs: did you mean"
        in found.done.err
    )
    assert "the policy's 'profile.traffic.Ram.*' has no effect: no figure of these runs" in found.done.err
    assert [row["pattern"] for row in found.record["policy"]["unmatched"]] == [
        "profile.traffic.Ram.*",
        "CONV2D@8",
    ]
    run = ROOT / "schemas" / "examples" / "valid" / "run-ds_cnn.json"
    done = compare(run, run, "--policy", "policy.toml", cwd=tmp_path).done
    assert (done.code, "of these runs no operators are known" in done.err) == (0, True)


@pytest.mark.torch
@pytest.mark.qemu
def test_two_compilations_by_rules_for_their_convolutions(made: Path, tmp_path: Path) -> None:
    """The weights move from SRAM to flash: each convolution takes its own cycles more, as the rules say exactly."""
    modes = ("--allow", "memory_mode")
    before = compare(made / "sram", made / "shared", *modes, cwd=tmp_path)
    growth = {
        (row["name"], row["source"]["module"]): part["change"]
        for row in before.only["operators"]
        for part in row["figures"]
        if part["name"] == "cycles.modelled"
    }
    change = before.metric("npu.cycles")["change"]
    assert change > sum(growth.values()) > 0  # the delegate's start takes longer, too, and is no operator
    for less in (0, 1):
        rules = "".join(
            _rule(f"{name}@{module}", f"tolerance = {cycles - less * (module == CONV)}", "cycles.modelled")
            for (name, module), cycles in growth.items()
        )
        (tmp_path / "policy.toml").write_text(rules, encoding="utf-8")
        found = compare(made / "sram", made / "shared", *modes, "--policy", "policy.toml", cwd=tmp_path)
        row = found.metric("npu.cycles")
        assert (row["status"], row["tolerated_at_operators"]) == ("regression", sum(growth.values()) - less)
        assert (
            "CONV2D (module 3, ethosu_sdk/compile/zoo/digits.py:60 in _network): cycles.modelled"
            in found.done.err
        ) == bool(less)
        assert json.dumps(read(tmp_path / "out" / "compare.json")["policy"]["operators"]).count(
            "pattern"
        ) == len(growth)
