"""Published logs of ExecuTorch's executor_runner, old and new. The figures are those that stand in them."""

import pytest

from ethosu_sdk.evidence import upstream_log
from ethosu_sdk.evidence.upstream_log import LogCounter, UpstreamLog
from tests.places import GOLDEN_LOGS


def parsed(name: str) -> UpstreamLog:
    return upstream_log.parse((GOLDEN_LOGS / name).read_text(encoding="utf-8").splitlines())


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
    assert log.pools == (("method_allocator", 1355722, 62914560), ("temp_allocator", 0, 1048576))
    assert log.sizes["planned_buffer_0"] == 752640
    assert log.sizes["method_allocator_input"] == 602116
    assert log.finished
    assert not log.failures
    assert log.grammars == ("2024", "2023")


def test_outputs_with_a_gap() -> None:
    (output,) = parsed("mobilenet_v2_corstone320_2024.log").outputs
    assert [(span.start, len(span.values)) for span in output.spans] == [(0, 3), (996, 4)]
    assert output.spans[0].values[0] == -0.749744
    assert output.spans[1].values[-1] == 1.576386
    assert not output.whole


def test_a_report_alone() -> None:
    log = parsed("mobilenet_v2_sram_only_pmu.log")
    (report,) = log.reports
    assert report.cycles == 4738932
    assert [row.value for row in report.counters] == [1447178, 420661, 0, 0, 130]
    assert not any(row.event for row in report.counters)
    assert not log.finished


def test_a_report_without_prefixes() -> None:
    (report,) = parsed("tflm_zephyr_pmu.log").reports
    assert report.cycles == 134869
    assert [row.value for row in report.counters] == [133577, 0, 111744, 0]


def test_the_grammar_with_functions() -> None:
    log = parsed("add_zephyr_fvp_2025.log")
    assert log.grammars == ("2025",)
    assert log.facts["model_bytes"] == 944
    assert ("method_allocator", 344, 512) in log.pools
    assert ("peak_temp_allocator", 0, 2048) in log.pools
    assert log.sizes["model_pte_program_size"] == 944
    assert log.finished
    assert not log.failures  # the limit of simulated time came after the firmware was done


def test_outputs_with_a_type() -> None:
    (output,) = parsed("add_corstone320_2025_outputs.log").outputs
    assert output.kind == "int"
    assert output.whole
    assert output.spans[0].values == (2.0,) * 5


def test_the_oldest_grammar() -> None:
    log = parsed("softmax_corstone300_2023.log")
    assert log.grammars == ("2023",)
    assert log.outputs[0].spans[0].values == (0.5,) * 4
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
    assert facts.items() <= upstream_log.parse([line]).facts.items()


def test_numbers_with_their_mean_per_inference() -> None:
    prefix = "I [executorch:arm_perf_monitor.cpp:1 StopMeasurements()] "
    messages = (
        "Ethos-U PMU report:",
        "ethosu_pmu_cycle_cntr :  247553 (247553.00 per inference)",  # its format has a flag that writes a space
        "ethosu_pmu_cntr0 : 18 (1.80 per inference)",
        "Ethos-U PMU Events:[ETHOSU_PMU_NPU_IDLE]",
    )
    log = upstream_log.parse([prefix + message for message in messages])
    (report,) = log.reports
    assert report.cycles == 247553
    assert report.counters == (LogCounter(0, 18, "NPU_IDLE"),)


@pytest.mark.parametrize(
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
        log = upstream_log.parse(lines)
        assert [row.text for row in log.failures] == [line]
        assert log.failures[0].line == lines.index(line) + 1


def test_a_time_limit_before_the_end_is_a_failure() -> None:
    log = upstream_log.parse(["Info: Simulation is stopping. Reason: CPU time has been exceeded."])
    assert len(log.failures) == 1


def test_nonsense_is_passed_over() -> None:
    lines = [
        "",
        "\x00\xff",
        "Output[0][0]: x",
        "ethosu_pmu_cntr0 : 1e9999 x",
    ]
    log = upstream_log.parse([*lines, "Output[1][3]: nan", "Output[2]: Not Tensor"])
    assert [row.index for row in log.outputs] == [1]
    assert log.no_tensors == (2,)
