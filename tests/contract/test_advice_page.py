"""The page about advice has a row for each rule, in the words of the table, and no other."""

from ethosu_sdk.reporting.advise.advice_rules import RULES
from tests.places import ROOT

PAGE = ROOT / "docs" / "guide" / "advise.md"


def test_every_rule_has_its_row_and_its_own_name() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## The rules")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ")[:2] for line in text.splitlines() if line.startswith("| `")]
    assert rows == [[f"`{rule.name}`", rule.pattern] for rule in RULES]
    assert len({rule.name for rule in RULES}) == len(RULES)
