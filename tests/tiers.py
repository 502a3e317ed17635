"""The tier of each test, and how long tests took when that was recorded."""

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.places import ROOT

TIERS = ("core", "full", "thorough")
DURATIONS = ROOT / "tests" / "durations.json"
_TABLE = tomllib.loads((ROOT / "tests" / "tiers.toml").read_text(encoding="utf-8"))
BUDGET_S: Mapping[str, float] = _TABLE["budget_s"]
PATHS: Mapping[str, str] = {path: tier for tier, paths in _TABLE["paths"].items() for path in paths}
COLLECTED: pytest.StashKey[dict[str, str]] = pytest.StashKey()


def tier_of_name(name: str) -> str | None:
    """The tier of a node id or path, relative to the repository: that of the longest name of the table that holds
    it. A test's name there holds all of its parameters."""
    path = Path(name.split("::", maxsplit=1)[0])
    names = (name, name.split("[", maxsplit=1)[0], *map(str, (path, *path.parents)))
    return next((PATHS[row] for row in names if row in PATHS), None)


def tier_of(item: pytest.Item) -> str:
    """The tier of a test: its own marker, or that of its name.

    Raises pytest.UsageError where it has none, or several.
    """
    own = {marker.name for marker in item.iter_markers()} & {*TIERS, "smoke"}
    found = {"core" if name == "smoke" else name for name in own} or {tier_of_name(item.nodeid)}
    if len(found) > 1:
        raise pytest.UsageError(f"{item.nodeid} is in several tiers: {', '.join(sorted(map(str, found)))}")
    (tier,) = found
    if tier is None:
        raise pytest.UsageError(f"{item.nodeid} is in no tier: add its path to tests/tiers.toml")
    return tier


def mark(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Give each test the marker of its tier, and keep the tiers of all for tests of the table.

    Tests of others, as those of ExecuTorch in .venv, have none.
    """
    found = config.stash.setdefault(COLLECTED, {})
    for item in (row for row in items if row.path.is_relative_to(ROOT / "tests")):
        tier = found[item.nodeid] = tier_of(item)
        if item.get_closest_marker(tier) is None:
            item.add_marker(tier)


def seconds_by_tier(tiers: Mapping[str, str], durations: Mapping[str, float]) -> Counter[str]:
    """What the tests of each tier took."""
    sums: Counter[str] = Counter()
    for name, tier in tiers.items():
        sums[tier] += durations.get(name, 0)
    return sums


def holds_none_of_core(path: Path) -> bool:
    """Whether no test of the file at `path` is in core: its import can be saved."""
    if path.suffix != ".py" or not path.name.startswith("test_"):
        return False
    name = str(path.relative_to(ROOT))
    if any(tier == "core" and test.startswith(f"{name}::") for test, tier in PATHS.items()):
        return False
    marked = re.search(r"\bmark\.(core|smoke)\b", path.read_text(encoding="utf-8"))
    return tier_of_name(name) != "core" and marked is None


class Recorder:
    """Adds up what each test takes with its fixtures, and writes it when the session ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if type(report) is pytest.TestReport:  # a subtest's has the name of its test, whose time holds it
            self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = json.loads(self._path.read_text(encoding="utf-8")) if self._path.is_file() else {}
        merged = {**known, **{name: round(seconds, 2) for name, seconds in self._seconds.items()}}
        kept = {name: merged[name] for name in sorted(merged) if (ROOT / name.split("::")[0]).is_file()}
        self._path.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
