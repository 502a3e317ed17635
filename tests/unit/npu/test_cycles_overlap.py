"""Block operations and transfers side by side; the expected cycles are worked out by hand in each test."""

from __future__ import annotations

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_overlap import Schedule

U55 = NpuConfig.for_target("ethos-u55", 128)
U85 = NpuConfig.for_target("ethos-u85", 256)


def test_a_transfer_runs_beside_what_was_begun_before() -> None:
    schedule = Schedule(U55)
    assert [schedule.kernel(100), schedule.transfer(30), schedule.kernel(10)] == [100, 100, 110]


def test_a_kernel_waits_for_the_transfer_that_it_needs() -> None:
    schedule = Schedule(U55)
    assert schedule.transfer(30) == 30
    schedule.wait_for_transfers(0)
    assert schedule.kernel(100) == 130


def test_a_wait_lets_the_allowed_number_go_on() -> None:
    schedule = Schedule(U85)
    assert [schedule.transfer(10), schedule.transfer(20), schedule.transfer(40)] == [10, 30, 70]
    schedule.wait_for_transfers(1)  # until the second has ended, at 30
    assert schedule.kernel(5) == 70
    schedule.wait_for_kernels(0)  # until 35
    schedule.wait_for_transfers(0)
    assert schedule.kernel(5) == 75


@pytest.mark.parametrize(("config", "end"), [(U55, 30 + 1), (U85, 30)])
def test_a_full_queue_of_transfers_holds_up_the_stream(config: NpuConfig, end: int) -> None:
    """Ethos-U55 keeps one transfer: the stream goes on to the kernel when the second of two has begun."""
    schedule = Schedule(config)
    schedule.transfer(30)
    schedule.transfer(0)
    assert schedule.kernel(1) == end


def test_kernels_take_their_turns() -> None:
    schedule = Schedule(U55)
    assert [schedule.kernel(10) for _ in range(4)] == [10, 20, 30, 40]
    assert schedule.transfer(5) == 40  # the stream came here when two kernels were left, at 20
    schedule.wait_for_transfers(0)
    assert schedule.kernel(0) == 40
