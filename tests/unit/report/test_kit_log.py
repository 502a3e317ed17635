"""The evaluation kit's log and the evidence in it: a log that was printed, whole and damaged."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ethosu_sdk.errors import InputError
from ethosu_sdk.evidence import kit_evidence, kit_log
from ethosu_sdk.evidence.kit_evidence import KitExpected
from ethosu_sdk.evidence.kit_log import KitTensor, Moved
from ethosu_sdk.evidence.uart import ProtocolError
from ethosu_sdk.files.hashing import sha256_bytes
from tests.places import GOLDEN_KIT_LOGS

LOG = (GOLDEN_KIT_LOGS / "ds_cnn.log").read_bytes()
PROGRAM = b"the program"
BLANK = bytes(range(112))
WRITTEN = b"\xff" * 48 + BLANK[48:]
EXPECTED = KitExpected(
    sha256=sha256_bytes(PROGRAM),
    program_address=0x9000_0000,
    method="forward",
    macs=128,
    inputs=(1960,),
    outputs=(48,),
    read=Moved(1, 1960, 0x9200_0000),
    copied=Moved(1, 48, 0x9300_0000),
    operators=(
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
        "aten::avg_pool2d.out",
    ),
    delegates={1: "EthosUBackend", 5: "EthosUBackend"},
    blank=BLANK,
)


def parsed(*lines: str) -> kit_log.KitLog:
    return kit_log.parse(lines)


def test_what_a_log_says() -> None:
    log = kit_log.parse(LOG.decode().splitlines())
    assert (log.facts["kit_version"], log.facts["macs"], log.facts["architecture"]) == (
        "25.12.0",
        128,
        "1.0.6",
    )
    assert log.inputs == [KitTensor(1960, 490, (1, 1, 49, 10), "fp32")]
    assert log.outputs == [KitTensor(48, 12, (1, 12), "fp32")]
    assert log.pools == {"method_pool": (43633, 2097152), "temp_pool": (22080, 33554432)}
    assert (log.finished, log.ended, log.failures) == (True, True, [])
    assert [group.first for group in log.groups] == log.reports


def test_complete_evidence() -> None:
    found = kit_evidence.gather(LOG, PROGRAM, WRITTEN, EXPECTED)
    assert found.outputs == (b"\xff" * 48,)
    assert found.counters["TOTAL"] == 125366
    kit_evidence.check_jobs(found, [125130, 236])
    for jobs in ([125366], [125130, 237], []):
        with pytest.raises(ProtocolError, match="the simulator's NPU"):
            kit_evidence.check_jobs(found, jobs)


def without(text: str) -> Callable[[bytes], bytes]:
    pattern = re.compile(rb"^[^\n]*" + re.escape(text.encode()) + rb"[^\n]*\n", re.MULTILINE)
    return lambda log: pattern.sub(b"", log)


def with_line(text: str) -> Callable[[bytes], bytes]:
    return lambda log: log + text.encode() + b"\n"


def changed(old: str, new: str) -> Callable[[bytes], bytes]:
    assert old.encode() in LOG
    return lambda log: log.replace(old.encode(), new.encode())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without("Inference completed."), "did not complete the inference"),
        (without("program terminating"), "has no end"),
        (with_line("ERROR - Inference failed."), "ERROR - Inference failed."),
        (with_line("I am here ERROR - and there"), "lacks nothing"),
        (with_line("INFO - x ERROR - Inference failed."), "Inference failed"),
        (with_line("E [ExecuTorch: a.cpp:1 f()] it broke"), "it broke"),
        (with_line("F [ExecuTorch: a.cpp:1 f()] it broke"), "it broke"),
        (with_line("E: ethosu_driver.c:1: NPU inference timed out."), "timed out"),
        (with_line("terminate called after throwing an instance of 'std::out_of_range'"), "terminate called"),
        (without("<metrics>"), "does not have the metrics"),
        (without("NPU AXI0_RD_DATA_BEAT_RECEIVED: "), "its lines report"),
        (changed("NPU TOTAL: 125366", "NPU TOTAL: 125367"), "its lines report"),
        (changed("0x90000000", "0x90000010"), "the program's address"),
        (changed('found "forward"', 'found "backward"'), "reports backward for the method"),
        (changed("MACs/cc:    128", "MACs/cc:    256"), "reports 256 for the NPU's MACs"),
        (changed("inferences: 1", "inferences: 2"), "reports 2 for inferences"),
        (changed("Tensor: 48 bytes", "Tensor: 44 bytes"), "reports (44,) for the bytes of outputs"),
        (changed("populated with 1960", "populated with 1956"), "the inputs read"),
        (changed("worth 48 bytes", "worth 44 bytes"), "the outputs copied"),
        (changed("0x93000000", "0x93000040"), "the outputs copied"),
        (without("Operator 2"), "operators"),
        (without("Inst 5"), "delegate calls"),
        (lambda log: b"", "did not complete"),
    ],
)
def test_a_log_that_lacks_or_contradicts_is_no_evidence(damage: Callable[[bytes], bytes], said: str) -> None:
    log = damage(LOG)
    assert log != LOG
    if said == "lacks nothing":  # the words within a line that is none of the kit's
        kit_evidence.gather(log, PROGRAM, WRITTEN, EXPECTED)
        return
    with pytest.raises(ProtocolError, match=re.escape(said)):
        kit_evidence.gather(log, PROGRAM, WRITTEN, EXPECTED)


@pytest.mark.parametrize(
    ("program", "written", "said"),
    [
        (PROGRAM + b"!", WRITTEN, "is not the program of this run"),
        (PROGRAM, BLANK, "did not write it"),
        (PROGRAM, b"\xff" * 49 + BLANK[49:], "wrote past the end of the outputs"),
        (PROGRAM, WRITTEN[:-1], "wrote past the end of the outputs"),
    ],
)
def test_memory_that_contradicts_is_no_evidence(program: bytes, written: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        kit_evidence.gather(LOG, program, written, EXPECTED)


def test_few_bytes_may_be_what_lay_there() -> None:
    """A bool may well be the random byte that was there before."""
    small = replace(EXPECTED, outputs=(1,), copied=Moved(1, 1, 0x9300_0000), blank=BLANK[:65])
    log = LOG.replace(b"Tensor: 48 bytes; 12", b"Tensor: 1 bytes; 1").replace(b"worth 48", b"worth 1")
    assert kit_evidence.gather(log, PROGRAM, BLANK[:65], small).outputs == (BLANK[:1],)


def metrics(value: object) -> str:
    return f"INFO - <metrics>{base64.b64encode(json.dumps(value).encode()).decode()}</metrics>"


SAMPLE = {"name": "NPU TOTAL", "value": [1]}


@pytest.mark.parametrize(
    "line",
    [
        "INFO - <metrics>not base64!</metrics>",
        "INFO - <metrics>/////w==</metrics>",
        "INFO - <metrics>" + "A" * ((1 << 20) + 4) + "</metrics>",
        "INFO - <metrics>" + base64.b64encode(b"[" * 5000 + b"]" * 5000).decode() + "</metrics>",
        metrics({}),
        metrics(7),
        metrics(["a group"]),
        metrics([{"profiling_group": "g", "count": 1}]),
        metrics([{"profiling_group": "g", "count": -1, "samples": []}]),
        metrics([{"profiling_group": "g", "count": True, "samples": []}]),
        metrics([{"profiling_group": "g", "count": 1, "samples": [{"name": "n", "value": ["1"]}]}]),
        metrics([{"profiling_group": "g", "count": 1, "samples": [{"name": "n", "value": [1 << 64]}]}]),
        metrics([{"profiling_group": "g", "count": 1, "samples": [SAMPLE] * 5000}]),
        metrics([{"profiling_group": "g", "count": 1, "samples": []}] * 300),
        "INFO - NPU TOTAL: " + "9" * 21 + " cycles",
        "INFO - Tensor: " + "9" * 4000 + " bytes; 1 elements",
    ],
    ids=range(16),
)
def test_what_no_firmware_prints_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="line 2 of the log has"):
        parsed("INFO - hello", line)


def test_endless_lists_are_refused() -> None:
    for line in ("INFO - Tensor: 4 bytes; 1 elements", "INFO - Operator 1: a", "INFO - Profile for X:"):
        with pytest.raises(InputError, match="more than"):
            kit_log.parse([line] * 5000)
    with pytest.raises(InputError, match="more than"):
        kit_log.parse([f"INFO - Inst {number}: EthosUBackend" for number in range(5000)])


def test_lines_of_others_are_left_to_others() -> None:
    lines = ["INFO - a", "hello", "I [ExecuTorch: a.cpp:1 f()] b", "terminate called after", "E: x.c:1: c"]
    assert kit_log.without(lines) == ["", "hello", "", "", ""]
    assert parsed("hello", "E: x.c:1: c").recognised == 0
