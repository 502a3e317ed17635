"""Every test is in one tier, and no tier takes longer than its budget."""

import json
from pathlib import Path

import pytest

from tests import tiers

UNKNOWN_SHARE = 0.1  # of the recorded tests: new ones, until durations are recorded again


def test_every_path_of_the_table_exists() -> None:
    assert [name for name in tiers.PATHS if not (tiers.ROOT / name.split("::")[0]).exists()] == []


def test_every_test_of_the_table_exists(request: pytest.FixtureRequest) -> None:
    collected = request.config.stash[tiers.COLLECTED]
    files = {name.split("::")[0] for name in collected}
    known = {*collected, *(name.split("[")[0] for name in collected)}
    tests = [name for name in tiers.PATHS if "::" in name and name.split("::")[0] in files]
    assert [name for name in tests if name not in known] == []


def test_no_tier_is_beyond_its_budget(request: pytest.FixtureRequest) -> None:
    durations = json.loads(tiers.DURATIONS.read_text(encoding="utf-8"))
    collected = request.config.stash[tiers.COLLECTED]
    sums = tiers.seconds_by_tier(collected, durations)
    assert {tier: took for tier, took in sums.items() if took > tiers.BUDGET_S[tier]} == {}
    unknown = [name for name in collected if name not in durations and "tests/container" not in name]
    assert len(unknown) <= UNKNOWN_SHARE * len(durations), "record durations: scripts/test --all --durations"


def test_a_tier_beyond_its_budget_is_found() -> None:
    sums = tiers.seconds_by_tier({"a": "core", "b": "core", "c": "full"}, {"a": 400, "b": 300, "c": 1})
    assert sums == {"core": 700, "full": 1}
    assert sums["core"] > tiers.BUDGET_S["core"]


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("tests/unit/base/test_npz.py", "core"),
        ("tests/integration/convert/test_convert.py", "core"),
        ("tests/integration/zoo/test_zoo.py::test_any[add]", "full"),
        ("tests/integration/advise/test_tries.py::test_ds_cnn", "thorough"),
        (
            "tests/integration/profile/test_profile.py::test_rows_add_up[transformer-ethos-u65-256]",
            "thorough",
        ),
        ("tests/integration/profile/test_profile.py::test_rows_add_up[ds_cnn-ethos-u55-128]", "full"),
        ("tests/container/test_images.py", "thorough"),
        ("tests/elsewhere/test_new.py", None),
        ("test_new.py", None),
    ],
)
def test_a_test_is_in_the_tier_of_its_longest_name(path: str, tier: str | None) -> None:
    assert tiers.tier_of_name(path) == tier


def test_files_without_a_test_of_core_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    monkeypatch.setattr(tiers, "PATHS", {"core": "core", "full": "full", "full/test_d.py::test_one": "core"})
    for name, text in {
        "core/test_a.py": "",
        "full/test_b.py": "@pytest.mark.full",
        "full/test_c.py": "marks=pytest.mark.smoke",
        "full/test_d.py": "",
        "full/conftest.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    left_out = [path.name for path in sorted(tmp_path.rglob("*.py")) if tiers.holds_none_of_core(path)]
    assert left_out == ["test_b.py"]


def test_a_test_in_no_tier_or_in_two_stops_the_run(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.Module.from_parent(request.session, path=tiers.ROOT / "tests" / "unit" / "test_npz.py")
    item = pytest.Function.from_parent(module, name="test_new", callobj=lambda: None)
    assert tiers.tier_of(item) == "core"
    monkeypatch.setattr(tiers, "PATHS", {})
    with pytest.raises(pytest.UsageError, match="in no tier"):
        tiers.mark(request.config, [item])
    item.add_marker("full")
    item.add_marker("smoke")
    with pytest.raises(pytest.UsageError, match="in several tiers: core, full"):
        tiers.mark(request.config, [item])
