"""Dimensions of comparisons that a record tells of in more than one member."""

import copy
from typing import Any

import pytest

from ethosu_sdk.records import kinds
from ethosu_sdk.reporting.compare import compared_records
from tests.records import example


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = compared_records.compare_dimensions(
        {"run": kinds.RUN.convert(before)}, {"run": kinds.RUN.convert(after)}
    )
    return [row.name for row in found if row.before != row.after]


def test_memories_and_systems_that_cycles_are_for_are_a_dimension() -> None:
    plain = example("run-ds_cnn")
    del plain["priced"]
    timed = copy.deepcopy(plain)
    latencies = {"read_latency_cycles": 32, "write_latency_cycles": 32}
    timed["npu"]["memory_timing"] = {
        "name": "executorch",
        "interfaces": [{"axi": 0, "bytes_per_cycle": 8, **latencies}],
    }
    assert _differing(timed, copy.deepcopy(timed)) == []
    assert _differing(plain, timed) == ["memory_timing"]
    slower = copy.deepcopy(timed)
    slower["npu"]["memory_timing"]["interfaces"][0]["read_latency_cycles"] += 1
    assert _differing(timed, slower) == ["memory_timing"]
    # What stands in for an unknown system is not the system of the same name that a program was compiled for.
    plain = example("run-ds_cnn")
    stands_in, slower, renamed = (copy.deepcopy(plain) for _ in range(3))
    stands_in["priced"]["compiled_for"] = False
    assert _differing(plain, stands_in) == ["memory_timing"]
    slower["priced"]["system"]["source"] = "board.ini"
    renamed["priced"]["system"]["source"] = "copy of board.ini"
    assert _differing(slower, renamed) == []
    renamed["priced"]["system"]["memories"][0]["read_latency_cycles"] += 1
    assert _differing(slower, renamed) == ["memory_timing"]
    del stands_in["priced"]
    assert _differing(plain, stands_in) == []


def test_the_board_that_a_time_is_for_is_a_dimension() -> None:
    """A run without a time has no figure that depends on a board."""
    timed = example("run-add-timed")
    memories = {"code": "MRAM", "constants": "MRAM", "arena": "SRAM0"}
    timed["time"]["waits"] = {"duration_s": 0.0, "memories": memories, "source": "a profile"}
    elsewhere, without_waits, untimed = (copy.deepcopy(timed) for _ in range(3))
    elsewhere["time"]["place"] = "alif-e8-he"
    del without_waits["time"]["waits"]
    del untimed["time"]
    assert _differing(timed, copy.deepcopy(timed)) == []
    assert _differing(timed, elsewhere) == _differing(timed, without_waits) == ["time_on"]
    assert _differing(timed, untimed) == _differing(untimed, elsewhere) == []


@pytest.mark.parametrize("name", ["run-add-timed", "run-ds_cnn"])
def test_a_runtime_is_told_by_its_name(name: str) -> None:
    record = example(name)
    other = copy.deepcopy(record)
    other["runtime"] = {
        "version": "1",
        **record["runtime"],
        "name": "own" if record["runtime"]["name"] != "own" else "executorch",
    }
    assert _differing(record, other) == ["runtime"]
