"""The page about advice has a row for each rule, in the words of the table, and no other."""

from __future__ import annotations

from ethosu_sdk.readers.advise.rules import RULES
from tests.places import ROOT

PAGE = ROOT / "docs" / "guide" / "advise.md"


def test_every_rule_has_its_row() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## The rules")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ")[:2] for line in text.splitlines() if line.startswith("| `")]
    assert rows == [[f"`{rule.name}`", rule.pattern] for rule in RULES]


def test_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
