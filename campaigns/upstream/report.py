"""What the tests came to, and the verdict."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

REQUIRED_PERCENT = 98.0


@dataclass(frozen=True)
class Result:
    """One test.

    `outcome` is passed, failed, skipped, xfailed or xpassed; the last two are tests that upstream expects to fail.
    `simulations` counts the FVPs that it started, `reason` says why it did not pass.
    """

    test: str
    outcome: str
    simulations: int
    reason: str
    seconds: float

    @property
    def judged(self) -> bool:
        """Whether it counts: it ran on the simulator, or failed before it could."""
        return self.outcome == "failed" or (self.outcome == "passed" and self.simulations > 0)


def read(file: Path) -> list[Result]:
    """The results in a file of the observer. A test that failed twice (call and teardown) counts once."""
    found: dict[str, Result] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        result = Result(**json.loads(line))
        if result.test not in found or found[result.test].outcome != "failed":
            found[result.test] = result
    return list(found.values())


def percent(results: Iterable[Result]) -> float:
    """How many of the tests that count pass, in percent; 0 when there is none."""
    outcomes = Counter(result.outcome for result in results if result.judged)
    return 100.0 * outcomes["passed"] / max(outcomes.total(), 1)


def summary(results: Sequence[Result]) -> str:
    """The counts, the failures with their reasons, and the reasons of what was skipped or expected to fail."""
    ran = [result for result in results if result.judged]
    passed = sum(result.outcome == "passed" for result in ran)
    others = Counter(result.outcome for result in results if not result.judged)
    lines = [
        f"{passed} passed, {len(ran) - passed} failed, {others['skipped']} skipped, "
        f"{others['xfailed'] + others['xpassed']} expected failures of upstream ({others['xpassed']} passed), "
        f"{others['passed']} passed that need no simulator",
        f"{percent(results):.2f} % of the {len(ran)} tests that count passed; {REQUIRED_PERCENT:g} % are required",
    ]
    for title, outcome in (
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("expected failures", "xfailed"),
        ("expected to fail, but passed", "xpassed"),
    ):
        lines += _by_reason(title, [result for result in results if result.outcome == outcome])
    return "\n".join(lines)


def _by_reason(title: str, results: Sequence[Result]) -> list[str]:
    reasons = Counter(result.reason for result in results)
    lines = [f"{title}:"] if results else []
    for reason, count in reasons.most_common():
        names = [result.test.split("/")[-1] for result in results if result.reason == reason]
        shown = names if title == "failed" else names[:3]
        more = f", and {count - len(shown)} more" if count > len(shown) else ""
        lines.append(f"  {count}: {reason or 'no reason given'}: {', '.join(shown)}{more}")
    return lines
