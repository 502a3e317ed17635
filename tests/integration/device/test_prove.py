"""`prove`: green on QEMU and on a device; what a double plants in a device's records is named.

The double is of the device: it changes what a real one prints, and seals it again with the nonce of the run.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns.fidelity.comparison import figures
from ethosu_sdk.analysis import prove_command
from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import protocol
from ethosu_sdk.records import kinds, validation
from ethosu_sdk.run import evidence
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.run.uart import parse_uart
from ethosu_sdk.simulate.device.device import Device
from ethosu_sdk.simulate.simulation import SimulationRequest, SimulationResult
from tests import simulated_device
from tests.conftest import ZooPte
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]
U55 = "ethos-u55-128"
SMALL = (str(GOLDEN_PTE / "add_u55.pte"), str(GOLDEN_PTE / "softmax.pte"))


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with simulated_device.running("--target", U55) as (found, _):
        yield found


def proof(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "prove.json").read_text())
    validation.check_record(record, "the proof")
    assert record["schema"] == kinds.PROVE.schema
    return record


def test_qemu_is_proved(tmp_path: Path) -> None:
    outcome = sdk_ok("prove", *SMALL, "--simulator", "qemu", "-o", "proof", cwd=tmp_path)
    assert "PROVED  qemu on corstone-300" in outcome.out
    record = proof(tmp_path / "proof")
    assert record["status"] == "pass"
    add, softmax = record["models"]
    assert [row["differing"] for row in (*add["outputs"], *softmax["outputs"])] == [0, 0]
    assert {row["status"] for row in add["counters"]} == {"equal"}
    assert len(add["counters"]) > 8
    sdk_ok("validate", tmp_path / "proof" / "prove.json", cwd=tmp_path)


def test_a_device_is_proved_operation_by_operation(place: str, zoo_pte: ZooPte, tmp_path: Path) -> None:
    sdk_ok("prove", zoo_pte("digits_cnn", U55).pte, "--device", place, "-o", "proof", cwd=tmp_path)
    record = proof(tmp_path / "proof")
    (digits,) = record["models"]
    assert record["device"]["kind"] == "simulated"
    assert len(digits["operations"]) > 3
    assert all(row["cycles"] == row["modelled"] for row in digits["operations"])
    # A table that scripts/fidelity --data reads.
    found = list(figures(tmp_path / "proof" / "fidelity.csv"))
    names = [f"{name} u55-128 Shared_Sram" for name in ("digits_cnn", "digits_cnn/0")]
    assert [row.run for row in found][:2] == names
    assert len(found) == 1 + len(digits["operations"])
    assert all(row.error == 0 for row in found)


def test_a_program_that_does_not_run_is_not_proved(place: str, tmp_path: Path) -> None:
    words = ("--device", place, "--board", "corstone-320", "-o", "proof")
    outcome = sdk("prove", SMALL[1], *words, cwd=tmp_path)
    assert_clear(outcome, 7, "is not proved", "softmax: the device is a corstone-300")
    assert [row["status"] for row in proof(tmp_path / "proof")["models"]] == ["fail"]


# The double.

Plant = Callable[[str, dict[str, Any]], None]


def sealed_again(printed: bytes, nonce: bytes, plant: Plant) -> bytes:
    """The records of a run with `plant`'s changes: numbered, with CRCs and the seal that they should have."""
    covered: list[str] = []
    lines = []
    for record in parse_uart(printed).records:
        row = dict(record.payload)
        plant(record.type, row)
        if record.type == "end":
            row["seal"] = evidence.seal(covered, nonce)
        payload = json.dumps(row, separators=(",", ":"))
        covered.append(f"{record.sequence} {record.type} {payload}")
        lines.append(
            f"{protocol.RECORD_PREFIX} {covered[-1]} {len(payload)} {zlib.crc32(covered[-1].encode()):08x}"
        )
    return "\n".join([*lines, ""]).encode()


def nonce_of(request: SimulationRequest) -> bytes:
    image = request.images[0][1]
    return image[protocol.INPUT_IMAGE_NONCE_AT :][: protocol.INPUT_IMAGE_NONCE_BYTES]


def prove_with(
    plant: Plant, place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, Any]]:
    real = Device.run

    def double(self: Device, request: SimulationRequest) -> SimulationResult:
        result = real(self, request)
        return replace(result, uart=sealed_again(result.uart, nonce_of(request), plant))

    monkeypatch.setattr(Device, "run", double)
    options = RunOptions(device=place)
    with pytest.raises(VerdictError) as error:
        prove_command.prove(SMALL[:1], CompileOptions(), options, folder, Reporter(quiet=True))
    return error.value.message, proof(folder)


def test_the_double_alone_changes_nothing(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        prove_with(lambda name, row: None, place, tmp_path / "proof", monkeypatch)
    assert proof(tmp_path / "proof")["status"] == "pass"


def test_a_wrong_ofm_byte_is_named(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CRC, which stands before the bytes, is learnt from a run without the fault."""
    content = bytearray()

    def learn(name: str, row: dict[str, Any]) -> None:
        if name == "data":
            content[:] = base64.b64decode(row["base64"])

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        prove_with(learn, place, tmp_path / "right", monkeypatch)
    monkeypatch.undo()
    content[4] ^= 1  # of element 1

    def plant(name: str, row: dict[str, Any]) -> None:
        if name == "output":
            row["crc32"] = f"{zlib.crc32(content):08x}"
        if name == "data":
            row["base64"] = base64.b64encode(content).decode()

    message, record = prove_with(plant, place, tmp_path / "proof", monkeypatch)
    assert "add_u55: output0 differs in 1 of 5 elements, first element 1:" in message
    assert record["models"][0]["outputs"][0]["first"] == 1


def test_a_counter_error_is_named(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(name: str, row: dict[str, Any]) -> None:
        if name == "pmu":
            row["counters"] = [[event, value + (event == 64)] for event, value in row["counters"]]

    message, record = prove_with(plant, place, tmp_path / "proof", monkeypatch)
    assert "add_u55: AO_ACTIVE is" in message
    wrong = [row["event"] for row in record["models"][0]["counters"] if row["status"] == "differs"]
    assert wrong == ["AO_ACTIVE"]
