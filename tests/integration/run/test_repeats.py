"""Many inferences in one boot: no drift, and what drifts is found; more PMU events than counters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu.device import Device, NpuConfig
from ethosu_sdk.program import pte
from ethosu_sdk.records import validation
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.qemu.memories import NpuMemory
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from tests.integration.cli import sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import printed, read

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
ADD = GOLDEN_PTE / "add_u55.pte"
THOUSAND = 1000
CMD, BASEP1 = 0x08, 0x88
INTERRUPT_BYTES = (
    256  # an extended frame (104) and what two handlers push; a leak would take 8 for each inference
)


def run(path: Path, folder: Path, *options: str) -> dict[str, Any]:
    record = printed(sdk("run", path, "-o", folder, "--json", *options, cwd=folder.parent))
    assert isinstance(record, dict)
    assert validation.record_problems(record) == []
    return record


@pytest.mark.thorough
def test_a_thousand_inferences_in_one_boot_do_not_drift(tmp_path: Path) -> None:
    """What one inference gives, uses and counts is what a thousand give, use and count."""
    for way in ((), ("--resident",)):
        once = run(ADD, tmp_path / "once", *way)
        many = run(ADD, tmp_path / "many", *way, "--repeat", str(THOUSAND if way else 20))
        count = many["repeats"]["count"]
        assert count == (THOUSAND if way else 20)
        assert many["repeats"]["outputs"] == many["repeats"]["counters"] == {"agree": True, "changed": 0}
        assert_same_memory(many, once)
        assert many["npu"].pop("delegate_calls") == count * once["npu"].pop("delegate_calls")
        assert many["npu"] == once["npu"]
        assert many["outputs"] == once["outputs"]


def assert_same_memory(many: dict[str, Any], once: dict[str, Any]) -> None:
    """The same use of every pool; but an interrupt may have come when the stack was at its deepest."""
    assert many["memory"]["regions"] == once["memory"]["regions"]
    pools, wanted = (
        {row["name"]: row["used_bytes"] for row in run["memory"]["pools"]} for run in (many, once)
    )
    assert abs(pools.pop("stack") - wanted.pop("stack")) <= INTERRUPT_BYTES
    assert pools == wanted


class FaultyDevice(Device):
    """The NPU model, but from job `first` on for `jobs` jobs one byte of the result is another."""

    def __init__(self, memory: NpuMemory, first: int, jobs: int) -> None:
        super().__init__(NpuConfig.for_target("ethos-u55", 128), memory)
        self._guest = memory
        self._faulty = range(first, first + jobs)
        self._output = output_offset()

    def write32(self, offset: int, value: int) -> None:
        before = len(self.jobs)
        super().write32(offset, value)
        if offset == CMD and len(self.jobs) > before and before in self._faulty:
            self._guest.window(self.read32(BASEP1) + self._output)[0] ^= 1


def output_offset() -> int:
    (delegate,) = pte.read(ADD).plan("forward").delegates
    assert delegate.vela is not None
    return delegate.vela.outputs[0].offset


def run_faulty(
    monkeypatch: pytest.MonkeyPatch, folder: Path, repeat: int, first: int, jobs: int
) -> dict[str, Any]:
    simulator = QemuSimulator(lambda _target, memory: FaultyDevice(memory, first, jobs))
    monkeypatch.setattr(simulators, "create_simulator", lambda *_args, **_options: simulator)
    options = RunOptions(repeat=repeat, resident=True)
    with pytest.raises(VerdictError):
        run_command.run(str(ADD), CompileOptions("ethos-u55-128"), options, folder, Reporter(quiet=True))
    record = read(folder / "run.json")
    assert isinstance(record, dict)
    return record


@pytest.mark.parametrize(
    ("first", "jobs", "changed"), [(6, 1, [6]), (7, 3, [7, 8, 9]), (9, 9, [9]), (0, 1, list(range(1, 10)))]
)
def test_one_wrong_byte_in_one_inference_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: int, jobs: int, changed: Sequence[int]
) -> None:
    record = run_faulty(monkeypatch, tmp_path / "out", 10, first, jobs)
    assert record["status"] == "fail"
    assert [row["repeat"] for row in record["repeats"]["outputs"]["first_changes"]] == changed
    assert record["repeats"]["outputs"]["changed"] == len(changed)
    assert record["repeats"]["counters"]["agree"]
    (check,) = (row for row in record["verdict"]["checks"] if row["status"] == "fail")
    assert f"the first is repeat {changed[0]} of set 0, output 0" in check["detail"]


@pytest.mark.parametrize("simulator", ["qemu", "host"])
def test_a_program_with_a_state_of_its_own_begins_anew_or_goes_on(simulator: str, tmp_path: Path) -> None:
    """Both ways must notice: ExecuTorch's own runtime counts on as well."""
    found = {}
    for option in ("", "--keep-state"):
        words = ("run", GOLDEN_PTE / "counter.pte", "-o", "out", "--repeat", "4", "--simulator", simulator)
        sdk_ok(*words, *filter(None, [option]), cwd=tmp_path)
        record = read(tmp_path / "out" / "run.json")
        found[record["repeats"]["state"]] = record["repeats"]["outputs"]
    assert found["reset"] == {"agree": True, "changed": 0}
    assert [row["repeat"] for row in found["kept"]["first_changes"]] == [1, 2, 3]


@pytest.mark.parametrize(("name", "counters"), [("add_u55", 4), ("add_u85_segment", 8)])
def test_more_events_than_counters_are_read_in_groups(name: str, counters: int, tmp_path: Path) -> None:
    path = GOLDEN_PTE / f"{name}.pte"
    target = pte.read(path).target()
    assert target is not None
    modelled = [row for row in simulators.pmu_events(target.npu).values() if row.modelled]
    others = [row for row in simulators.pmu_events(target.npu).values() if not row.modelled]
    # Every other one is modelled, so that they spread over the groups.
    mixed = [row for pair in zip(modelled, others, strict=False) for row in pair]
    rows = [*mixed, *(row for row in others if row not in mixed)]
    chosen = [row.name for row in rows[: 2 * counters + 1]]
    grouped = run(path, tmp_path / "grouped", "--resident", "--events", ",".join(chosen))
    assert grouped["repeats"]["count"] == 3
    assert grouped["npu"]["groups_agree"] is True
    assert [row["cycles"] for row in grouped["npu"]["groups"]] == [grouped["npu"]["cycles"]] * 3
    for row in grouped["npu"]["counters"]:
        assert row["group"] == chosen.index(row["event"]) // counters
    # What each counts is what it counts when it is read alone with its neighbours.
    values = {row["event"]: row["value"] for row in grouped["npu"]["counters"]}
    assert len(values) > counters // 2
    assert len({row["group"] for row in grouped["npu"]["counters"]}) > 1
    for start in range(0, len(chosen), counters):
        names = chosen[start : start + counters]
        alone = run(path, tmp_path / f"alone{start}", "--resident", "--events", ",".join(names))
        assert "groups" not in alone["npu"]
        assert "repeats" not in alone
        for row in alone["npu"]["counters"]:
            assert row["value"] == values[row["event"]]
            assert "group" not in row


def test_groups_that_do_not_agree_are_marked() -> None:
    from ethosu_sdk.records.common import Metric
    from ethosu_sdk.records.run import Npu, NpuCounter
    from ethosu_sdk.run.repeats import grouped

    cycles = Metric(value=10, unit="cycles", source="measured")
    counters = [NpuCounter(event=f"E{n}", id=n, value=n, unit="cycles", source="measured") for n in (1, 2)]
    npu = Npu(id=0, config=0, delegate_calls=1, counters=tuple(counters), cycles=cycles)
    found = grouped(npu, ((1,), (2,)), [10, 11])
    assert found.groups_agree is False
    assert [row.group for row in found.counters] == [0, 1]
    assert found.groups is not None
    assert [row.cycles.value for row in found.groups if row.cycles is not None] == [10, 11]
    assert grouped(npu, ((1, 2),), [10]) == npu
    assert all(row.cycles is not None and row.cycles.source == "measured" for row in found.groups)
