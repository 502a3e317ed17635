"""Logs of others: ExecuTorch's executor_runner, old and new, and the evaluation kit's with the evidence in it."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.filesystem import sha256_bytes
from ethosu_sdk.reporting import saved_logs
from ethosu_sdk.reporting.saved_logs import LogCounter, UpstreamLog
from ethosu_sdk.run import kit_log
from ethosu_sdk.run.kit_log import KitExpected, KitMoves, KitTensor
from ethosu_sdk.run.uart import ProtocolError
from tests.places import GOLDEN_KIT_LOGS, GOLDEN_LOGS
from tests.tables import each


def parsed(name: str) -> UpstreamLog:
    return saved_logs.parse_upstream_log((GOLDEN_LOGS / name).read_text(encoding="utf-8").splitlines())


def test_a_whole_report_of_2024() -> None:
    log = parsed("mobilenet_v2_corstone320_2024.log")
    (report,) = log.reports
    assert report.cycles == 5920305
    assert report.counters == (
        LogCounter(0, 359921, "EXT0_RD_DATA_BEAT_RECEIVED"),
        LogCounter(1, 0, "EXT1_RD_DATA_BEAT_RECEIVED"),
        LogCounter(2, 0, "EXT0_WR_DATA_BEAT_WRITTEN"),
        LogCounter(3, 503, "NPU_IDLE"),
    )
    assert log.facts["model_bytes"] == 4425968
    assert log.facts["model_address"] == "0x70000000"
    assert log.facts["method"] == "forward"
    assert log.facts["npu_inferences"] == 1
    assert log.cpu_cycles == {
        "delegate": 1498202,
        "operators": 1498202,
        "inference": 6925114,
        "wait_for_npu": 729,
    }
    assert log.pools == [("method_allocator", 1355722, 62914560), ("temp_allocator", 0, 1048576)]
    assert log.sizes["planned_buffer_0"] == 752640
    assert log.sizes["method_allocator_input"] == 602116
    assert log.finished
    assert not log.failures
    assert log.grammars == ("2024", "2023")


def test_outputs_with_a_gap_and_with_a_type() -> None:
    (output,) = parsed("mobilenet_v2_corstone320_2024.log").outputs
    assert [(span.start, len(span.values)) for span in output.spans] == [(0, 3), (996, 4)]
    assert output.spans[0].values[0] == -0.749744
    assert output.spans[1].values[-1] == 1.576386
    (output,) = parsed("add_corstone320_2025_outputs.log").outputs
    assert output.kind == "int"
    assert [span.start for span in output.spans] == [0]
    assert output.spans[0].values == [2.0] * 5


def test_reports_alone_and_without_prefixes() -> None:
    log = parsed("mobilenet_v2_sram_only_pmu.log")
    (report,) = log.reports
    assert report.cycles == 4738932
    assert [row.value for row in report.counters] == [1447178, 420661, 0, 0, 130]
    assert not any(row.event for row in report.counters)
    assert not log.finished
    (report,) = parsed("tflm_zephyr_pmu.log").reports
    assert report.cycles == 134869
    assert [row.value for row in report.counters] == [133577, 0, 111744, 0]


def test_the_grammar_with_functions_and_the_oldest() -> None:
    log = parsed("add_zephyr_fvp_2025.log")
    assert log.grammars == ("2025",)
    assert log.facts["model_bytes"] == 944
    assert ("method_allocator", 344, 512) in log.pools
    assert ("peak_temp_allocator", 0, 2048) in log.pools
    assert log.sizes["model_pte_program_size"] == 944
    assert log.finished
    assert not log.failures  # the limit of simulated time came after the firmware was done
    log = parsed("softmax_corstone300_2023.log")
    assert log.grammars == ("2023",)
    assert log.outputs[0].spans[0].values == [0.5] * 4
    assert log.finished
    assert not log.failures


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (
            "I [executorch:arm_executor_runner.cpp:9 main()] PTE @ 0x70000000 [----ET12]",
            {"model_address": "0x70000000"},
        ),
        ("I [executorch:a.cpp:1 f()] PTE in 0x70000000 $ Size: 12 bytes", {"model_bytes": 12}),
        ("I [executorch:a.cpp:1 f()] NPU delegations: 20 (2.00 per inference)", {"delegate_calls": 20}),
        ("I [executorch:a.cpp:1 f()] 10 inferences finished", {"inferences_done": 10}),
        ("I 00:00:00.003987 executorch:executor_runner.cpp:166] 2 outputs:", {"output_count": 2}),
    ],
)
def test_facts_of_other_releases(line: str, facts: dict[str, object]) -> None:
    assert facts.items() <= saved_logs.parse_upstream_log([line]).facts.items()


def test_numbers_with_means_and_nonsense() -> None:
    prefix = "I [executorch:arm_perf_monitor.cpp:1 StopMeasurements()] "
    messages = (
        "Ethos-U PMU report:",
        "ethosu_pmu_cycle_cntr :  247553 (247553.00 per inference)",  # its format has a flag that writes a space
        "ethosu_pmu_cntr0 : 18 (1.80 per inference)",
        "Ethos-U PMU Events:[ETHOSU_PMU_NPU_IDLE]",
    )
    log = saved_logs.parse_upstream_log([prefix + message for message in messages])
    (report,) = log.reports
    assert report.cycles == 247553
    assert report.counters == (LogCounter(0, 18, "NPU_IDLE"),)
    lines = [
        "",
        "\x00\xff",
        "Output[0][0]: x",
        "ethosu_pmu_cntr0 : 1e9999 x",
    ]
    log = saved_logs.parse_upstream_log([*lines, "Output[1][3]: nan", "Output[2]: Not Tensor"])
    assert [row.index for row in log.outputs] == [1]
    assert log.no_tensors == [2]
    log = saved_logs.parse_upstream_log(["Info: Simulation is stopping. Reason: CPU time has been exceeded."])
    assert len(log.failures) == 1


@each(
    "line",
    [
        "E [executorch:arm_executor_runner.cpp:7 main()] Execution of method forward failed with status 0x1",
        "I [executorch:arm_executor_runner.cpp:7] Loading of method forward failed with status 0x14",
        "F executorch:runner.cpp:9] In function main(), assert failed",
        "E: NPU config mismatch. npu.product=0, optimizer.product=1",
        "Hard fault. irq=-13, pc=0x00000000, lr=0x10001234, xpsr=0x61000003, sp=0x30007f00",
        "TEST: BundleIO index[0] Test_result: FAIL",
    ],
)
def test_a_failure_is_a_failure_before_and_after_the_end(line: str) -> None:
    end = "I [executorch:arm_executor_runner.cpp:1 main()] Program complete, exiting."
    for lines in ([line, end], [end, line]):
        log = saved_logs.parse_upstream_log(lines)
        assert [text for _, text in log.failures] == [line]
        assert log.failures[0][0] == lines.index(line) + 1


# --- The evaluation kit's log and the evidence in it: a log that was printed, whole and damaged.

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
    read=KitMoves(1, 1960, 0x9200_0000),
    copied=KitMoves(1, 48, 0x9300_0000),
    operators=(
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
        "aten::avg_pool2d.out",
    ),
    delegates={1: "EthosUBackend", 5: "EthosUBackend"},
    blank=BLANK,
)


def kit_parsed(*lines: str) -> kit_log.KitLog:
    return kit_log.parse_kit_log(lines)


def test_a_log_of_the_kit_is_complete_evidence() -> None:
    log = kit_log.parse_kit_log(LOG.decode().splitlines())
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
    found = kit_log.kit_evidence_of(LOG, PROGRAM, WRITTEN, EXPECTED)
    assert found.outputs == (b"\xff" * 48,)
    assert found.counters["TOTAL"] == 125366
    kit_log.crosscheck_kit_jobs(found, [125130, 236])
    for jobs in ([125366], [125130, 237], []):
        with pytest.raises(ProtocolError, match="the simulator's NPU"):
            kit_log.crosscheck_kit_jobs(found, jobs)


def without(text: str) -> Callable[[bytes], bytes]:
    pattern = re.compile(rb"^[^\n]*" + re.escape(text.encode()) + rb"[^\n]*\n", re.MULTILINE)
    return lambda log: pattern.sub(b"", log)


def with_line(text: str) -> Callable[[bytes], bytes]:
    return lambda log: log + text.encode() + b"\n"


def changed(old: str, new: str) -> Callable[[bytes], bytes]:
    assert old.encode() in LOG
    return lambda log: log.replace(old.encode(), new.encode())


@each(
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
        kit_log.kit_evidence_of(log, PROGRAM, WRITTEN, EXPECTED)
        return
    with pytest.raises(ProtocolError, match=re.escape(said)):
        kit_log.kit_evidence_of(log, PROGRAM, WRITTEN, EXPECTED)


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
        kit_log.kit_evidence_of(LOG, program, written, EXPECTED)


def test_few_bytes_may_be_what_lay_there() -> None:
    """A bool may well be the random byte that was there before."""
    small = replace(EXPECTED, outputs=(1,), copied=KitMoves(1, 1, 0x9300_0000), blank=BLANK[:65])
    log = LOG.replace(b"Tensor: 48 bytes; 12", b"Tensor: 1 bytes; 1").replace(b"worth 48", b"worth 1")
    assert kit_log.kit_evidence_of(log, PROGRAM, BLANK[:65], small).outputs == (BLANK[:1],)


def metrics(value: object) -> str:
    return f"INFO - <metrics>{base64.b64encode(json.dumps(value).encode()).decode()}</metrics>"


SAMPLE = {"name": "NPU TOTAL", "value": [1]}


@each(
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
)
def test_what_no_firmware_prints_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="line 2 of the log has"):
        kit_parsed("INFO - hello", line)


def test_endless_lists_are_refused_and_lines_of_others_left() -> None:
    for line in ("INFO - Tensor: 4 bytes; 1 elements", "INFO - Operator 1: a", "INFO - Profile for X:"):
        with pytest.raises(InputError, match="more than"):
            kit_log.parse_kit_log([line] * 5000)
    with pytest.raises(InputError, match="more than"):
        kit_log.parse_kit_log([f"INFO - Inst {number}: EthosUBackend" for number in range(5000)])
    lines = ["INFO - a", "hello", "I [ExecuTorch: a.cpp:1 f()] b", "terminate called after", "E: x.c:1: c"]
    assert kit_log.without_kit_lines(lines) == ["", "hello", "", "", ""]
    assert kit_parsed("hello", "E: x.c:1: c").recognised == 0
