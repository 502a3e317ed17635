"""`parse-log` and `explain` as users start them, on logs as published and on the SDK's own firmware's."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.records import validation
from ethosu_sdk.reporting import parse_log_command
from tests.integration.cli import sdk
from tests.places import GOLDEN_KIT_LOGS, GOLDEN_LOGS
from tests.records import printed
from tests.unit.run import wire


def record_of(name: str, content: bytes) -> dict[str, Any]:
    record = parse_log_command.make_log_record(name, content)
    assert validation.record_problems(record) == []
    return record


@pytest.mark.parametrize(
    ("name", "status", "source"),
    [
        ("mobilenet_v2_corstone320_2024.log", "pass", "reported"),
        ("mobilenet_v2_sram_only_pmu.log", "incomplete", "reported"),
        ("tflm_zephyr_pmu.log", "incomplete", "reported"),
        ("evaluation_kit_alif_kws_pmu.log", "incomplete", "reported"),
        ("evaluation_kit_u85_pmu.log", "incomplete", "reported"),
        ("add_zephyr_fvp_2025.log", "pass", None),
        ("add_corstone320_2025_outputs.log", "pass", None),
        ("softmax_corstone300_2023.log", "pass", None),
    ],
)
def test_published_logs(name: str, status: str, source: str | None) -> None:
    record = record_of(name, (GOLDEN_LOGS / name).read_bytes())
    assert record["status"] == status
    sources = {row["cycles"]["source"] for row in record["npu"]["reports"]}
    assert sources == ({source} if source else set())


def test_what_an_fvp_printed_is_measured_and_cpu_cycles_never_are() -> None:
    log = (GOLDEN_LOGS / "mobilenet_v2_corstone320_2024.log").read_bytes()
    record = record_of("fvp", log + b"Info: /OSCI/SystemC: Simulation stopped by user.\n")
    assert record["npu"]["reports"][0]["cycles"] == {"value": 5920305, "unit": "cycles", "source": "measured"}
    assert "cpu" not in record
    (reason,) = [row["reason"] for row in record["unavailable"] if row["path"] == "/cpu/cycles"]
    assert "6925114" in reason


def test_what_a_launcher_printed_is_modelled() -> None:
    log = (GOLDEN_LOGS / "mobilenet_v2_corstone320_2024.log").read_bytes()
    record = record_of("launcher", b"FVP_X: a launcher of ethosu-sdk, not Arm's FVP: QEMU runs a.elf\n" + log)
    assert record["npu"]["reports"][0]["cycles"]["source"] == "modelled"


def test_the_evaluation_kits_runner(tmp_path: Path) -> None:
    record = printed(sdk("parse-log", GOLDEN_KIT_LOGS / "ds_cnn.log", "--json", cwd=tmp_path))
    assert record["grammars"] == ["evaluation-kit"]
    assert record["model"] == {"address": "0x90000000", "entry": "forward"}
    assert (record["inferences"], record["npu"]["delegate_calls"]) == (1, 2)
    (report,) = record["npu"]["reports"]
    assert report["cycles"] == {"value": 125366, "unit": "cycles", "source": "reported"}
    assert {row["event"]: row["value"] for row in report["counters"]} == {
        "NPU_ACTIVE": 125366,
        "AXI0_RD_DATA_BEAT_RECEIVED": 23916,
        "AXI0_WR_DATA_BEAT_WRITTEN": 14630,
        "AXI1_RD_DATA_BEAT_RECEIVED": 4136,
        "NPU_IDLE": 0,
    }
    assert record["outputs"] == [{"index": 0, "kind": "fp32", "shape": [1, 12], "elements": 12}]
    assert {row["name"]: row["used_bytes"] for row in record["memory"]["pools"]} == {
        "method_pool": 43633,
        "temp_pool": 22080,
    }


def test_a_failure_of_the_evaluation_kits_runner_is_explained(tmp_path: Path) -> None:
    done = sdk("parse-log", GOLDEN_KIT_LOGS / "missing_operator.log", "--json", cwd=tmp_path)
    assert done.code == 7
    record = json.loads(done.out)
    assert record["status"] == "fail"
    assert len(record["failures"]) == 4
    assert all("missing" in name for row in record["failures"][:2] for name in row["known"])
    assert "ethosu-sdk explain executorch-operator-missing" in done.err


def test_names_of_an_ethos_u85s_events() -> None:
    record = record_of("u85", (GOLDEN_LOGS / "evaluation_kit_u85_pmu.log").read_bytes())
    events = [row["event"] for row in record["npu"]["reports"][0]["counters"]]
    assert "SRAM_RD_DATA_BEAT_RECEIVED" in events
    assert not any(name.startswith("ETHOSU_PMU_") for name in events)


def test_the_command(tmp_path: Path) -> None:
    record = printed(
        sdk("parse-log", GOLDEN_LOGS / "mobilenet_v2_corstone320_2024.log", "--json", cwd=tmp_path)
    )
    assert record["memory"]["pools"][0] == {
        "name": "method_allocator",
        "used_bytes": 1355722,
        "size_bytes": 62914560,
    }
    explained = sdk("explain", "--json", "status 0x14", cwd=tmp_path)
    assert [row["id"] for row in json.loads(explained.out)["errors"]] == ["executorch-operator-missing"]
    assert sdk("explain", "all is well", cwd=tmp_path).code == 2


def test_a_failure_in_a_log_is_exit_code_7_and_explained(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(
        "E: NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=7\n"
        "I [executorch:arm_executor_runner.cpp:1 main()] Program complete, exiting.\n"
    )
    with pytest.raises(VerdictError, match="NPU config mismatch") as failed:
        parse_log_command.parse_log(path, Reporter(quiet=True))
    assert failed.value.hint == "ethosu-sdk explain npu-config-mismatch"


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 1000, b"hello\nworld\n", b"x" * 100_000])
def test_what_is_no_log_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no line"):
        parse_log_command.parse_log(path, Reporter())


def test_the_sdks_own_firmware() -> None:
    record = record_of("uart.log", wire.uart(wire.good_rows()))
    assert record["status"] == "pass"
    assert record["model"] == {"bytes": len(wire.MODEL), "sha256": "5" * 64, "entry": "forward"}
    assert record["npu"]["delegate_calls"] == 1
    (output,) = record["outputs"]
    assert (output["dtype"], output["shape"]) == ("int8", [2, 4])
    assert output["sha256"] == hashlib.sha256(wire.OUTPUT).hexdigest()


def lost_end(log: bytes) -> bytes:
    return log[: log.index(b"~ethosu 11")]


def lost_data(log: bytes) -> bytes:
    return b"".join(line for line in log.splitlines(keepends=True) if b" data " not in line)


def misplaced(log: bytes) -> bytes:
    """A piece that names another place, with a CRC that is right."""
    rows = [
        (name, {**row, "offset": 1 << 64} if row.get("offset") == 0 else row)
        for name, row in wire.good_rows()
    ]
    return wire.uart(rows)


def flipped(log: bytes) -> bytes:
    return log.replace(b"1234", b"1235")


@pytest.mark.parametrize(
    ("damage", "status"),
    [(lost_end, "incomplete"), (lost_data, "fail"), (flipped, "fail"), (misplaced, "fail")],
)
def test_a_damaged_log_of_the_own_firmware_is_not_green(
    damage: Callable[[bytes], bytes], status: str
) -> None:
    assert record_of("uart.log", damage(wire.uart(wire.good_rows())))["status"] == status
