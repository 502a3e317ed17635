"""Requests and results: what is refused before torch is asked, and the way through JSON and back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import BuildError, InputError, SdkError, ToolError, UsageError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.front_ends import table
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.compile.vela_capture import parse_summary
from ethosu_sdk.records.common import Estimate, SourceLine, TosaOperation, VelaOperation
from ethosu_sdk.records.compile import CpuOperator, Delegate, DelegateFiles, Operation, Site
from tests.tables import each

TARGET = parse_target("ethos-u55-128")


@pytest.fixture
def request_(tmp_path: Path) -> CompileRequest:
    return CompileRequest("zoo:add", TARGET, tmp_path)


def test_request_survives_json(request_: CompileRequest) -> None:
    full = replace(
        request_,
        options=ProgramOptions(
            quantize="int16",
            quantize_per="tensor",
            io="int8",
            delegate=False,
            inputs=Path("i.npz"),
            calibration=(Path("a"), Path("b")),
            vela_config=Path("v.ini"),
            vela_flags=("--optimise=Size",),
            trust=True,
        ),
        timeout_s=7.0,
        evaluation=compile_facts.EvaluationRequest(Path("e.npz"), Path("spool")),
        check_folder=Path("check"),
        locate=True,
    )
    for request in (request_, full):
        assert compile_facts.from_json(CompileRequest, json.loads(compile_facts.to_json(request))) == request


def test_output_survives_json(tmp_path: Path) -> None:
    tensor = compile_facts.TensorFacts("int8", (1, 3, 2, 2), (0, 2, 3, 1))
    source = SourceLine(file="net.py", line=3, module="block.conv", module_type="Conv2d")
    cycles = Estimate(name="total_cycles", value=7.0, unit="cycles", source="estimated")
    operation = Operation(
        offsets=(64, 96),
        vela=VelaOperation(operator="Conv2D", name="out"),
        tosa=TosaOperation(index=3, operator="CONV2D", tensor="conv"),
        source=source,
        estimates=(cycles,),
    )
    copy = Operation(offsets=(128,), vela=VelaOperation(operator="Copy"), estimates=())
    delegate = Delegate(
        index=0,
        payload_sha256="ab" * 32,
        payload_bytes=4,
        scratch_bytes=64,
        fast_scratch_bytes=0,
        files=DelegateFiles(tosa="d.tosa", summary="d.csv", per_layer="p.csv", debug="d.xml"),
        estimates=(cycles,),
        operations=(operation, copy),
    )
    sites = (Site(calls=1, reason="too wide", source=source), Site(calls=1, reason="too high"))
    output = CompileOutput(
        name="add",
        pte=tmp_path / "add.pte",
        pte_sha256="ef",
        pte_bytes=5,
        io=tmp_path / "add.io.npz",
        log=tmp_path / "compile.log",
        model_source="zoo:add",
        model_sha256="01",
        target=TARGET,
        quantize="none",
        io_type="float",
        calibration_source="none",
        calibration_samples=0,
        methods=("forward",),
        inputs=(tensor,),
        outputs=(tensor, tensor),
        cpu_operators=(CpuOperator(name="aten::_softmax.out", calls=2, boundary=False, sites=sites),),
        delegates=(delegate,),
        versions={"torch": "2"},
        timings_s={"lower": 1.5},
        warnings=("Beware.",),
        prequantized=True,
    )
    assert compile_facts.from_json(CompileOutput, json.loads(compile_facts.to_json(output))) == output


@each(
    ("change", "error", "words"),
    [
        ({"model": "zoo:nothing"}, UsageError, "zoo has no model"),
        ({"model": "absent.py"}, InputError, "absent.py"),
        ({"options": ProgramOptions(quantize="int9")}, UsageError, "int9"),
        ({"options": ProgramOptions(io="int16")}, UsageError, "int16"),
        (
            {"options": ProgramOptions(quantize_per="layer")},
            UsageError,
            "unknown way to scale weights 'layer'",
        ),
        (
            {"options": ProgramOptions(vela_flags=("--cop-format=COP2",))},
            UsageError,
            "--cop-format cannot be added",
        ),
        ({"options": ProgramOptions(vela_config=Path("absent.ini"))}, InputError, "absent.ini"),
        ({"options": ProgramOptions(io="int8", quantize="none")}, UsageError, "--io int8"),
        ({"options": ProgramOptions(io="int8", quantize="int16")}, UsageError, "--io int8"),
        ({"options": ProgramOptions(inputs=Path("absent.npz"))}, InputError, "absent.npz"),
        ({"options": ProgramOptions(calibration=(Path("absent.npz"),))}, InputError, "absent.npz"),
        ({"target": replace(TARGET, macs=99)}, UsageError, "ethos-u55-99"),
        ({"target": replace(TARGET, system_config="Ethos_U85_SYS_DRAM_Mid")}, UsageError, "does not belong"),
    ],
)
def test_wrong_requests_start_no_process(
    request_: CompileRequest, change: dict[str, object], error: type[SdkError], words: str
) -> None:
    with pytest.raises(error) as caught:
        compile_model(replace(request_, **change))  # type: ignore[arg-type]
    assert words in caught.value.message


def test_missing_packages_are_named(request_: CompileRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_is_there", lambda name: name != "torchao")
    with pytest.raises(ToolError, match=r"not installed: torchao$") as caught:
        compile_model(request_)
    assert "ethosu-sdk[compile]" in caught.value.hint


def test_vela_summary() -> None:
    text = "experiment,memory_mode,cycles_total,sram_memory_used,note\ndefault,Shared_Sram,105.0,1.25,\n"
    assert parse_summary(text) == {"cycles_total": 105.0, "sram_memory_used": 1.25}


@pytest.mark.parametrize("text", ["", "cycles_total\n", "cycles_total\n1\n2\n", "new_text_column\nword\n"])
def test_vela_summary_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(BuildError):
        parse_summary(text)
