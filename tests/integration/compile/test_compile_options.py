"""The options of a compilation do what they say, and its record tells where everything comes from.

The pipeline runs in this process, so that torch is imported once for all cases.
"""

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import UsageError, VerdictError
from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import check_record, compile_command, compile_facts, compile_record, worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.compile.program_options import CompileOptions, ProgramOptions
from ethosu_sdk.program import pte
from ethosu_sdk.records import validation
from ethosu_sdk.records.common import SourceLine
from tests import warm
from tests.conftest import ZooPte
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

U55 = parse_target("ethos-u55-128")
NET = """\
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 4, 3)
        with torch.no_grad():
            self.conv.weight[1] *= 100
    def forward(self, x):
        y = self.conv(x)
        return torch.nn.functional.relu(y)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
    def forward(self, x):
        y = self.block(x)
        z = torch.nn.functional.avg_pool2d(y, (20, 20))
        return torch.sort(z, dim=1)[0]
example_inputs = torch.linspace(-1, 1, 1452).view(1, 3, 22, 22)
"""
CONV, POOL, SORT = 10, 18, 19  # the lines of these calls
INI = """\
[System_Config.Board]
core_clock=123e6
axi0_port=Sram
axi1_port=Dram
Sram_clock_scale=1.0
Sram_burst_length=32
Sram_read_latency=32
Sram_write_latency=32
Dram_clock_scale=0.5
Dram_burst_length=128
Dram_read_latency=500
Dram_write_latency=250
[Memory_Mode.Tight]
const_mem_area=Axi1
arena_mem_area=Axi1
cache_mem_area=Axi0
arena_cache_size=4096
"""


@dataclass(frozen=True)
class Compiled:
    """A compilation: what was asked, what came out, and the record of it, which is valid."""

    request: CompileRequest
    output: CompileOutput
    record: dict[str, Any]


Run = Callable[..., Compiled]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(source, entry="Net", **options)``: a file compiled in a folder of its own."""

    def compile_source(source: str, entry: str = "Net", target: Target = U55, **options: Any) -> Compiled:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        path = folder / "net.py"
        path.write_text(textwrap.dedent(source))
        request = CompileRequest(f"{path}:{entry}", target, folder, options=ProgramOptions(**options))
        output = worker.run_stages(request, lambda stage: None)
        output = compile_facts.from_json(CompileOutput, json.loads(compile_facts.to_json(output)))
        record = check_record.check_left_out(compile_record.compile_record(request, output, "0" * 64, 1.0))
        assert validation.record_problems(record) == []
        return Compiled(request, output, record)

    return compile_source


def test_where_everything_comes_from(run: Run) -> None:
    done = run(NET, as_written=True)
    operators = {row["name"]: row for row in done.record["cpu_operators"]}
    assert {name: row["boundary"] for name, row in operators.items()} == {
        "quantized_decomposed::quantize_per_tensor.out": True,
        "quantized_decomposed::dequantize_per_tensor.out": True,
        "aten::avg_pool2d.out": False,
        "aten::topk.values": False,
    }
    for row in operators.values():
        assert row["calls"] == sum(site["calls"] for site in row["sites"])
    (pool,) = operators["aten::avg_pool2d.out"]["sites"]
    place = {"file": "net.py", "line": POOL, "function": "Net.forward"}
    assert pool["source"] == {**place, "module": "", "module_type": "Net"}
    assert "stride <= 3, got [20, 20]" in pool["reason"]
    (sort,) = operators["aten::topk.values"]["sites"]
    assert (sort["source"]["file"], sort["source"]["line"]) == ("net.py", SORT)
    (delegate,) = done.output.delegates
    conv = SourceLine(
        file="net.py", line=CONV, module="block.conv", module_type="Conv2d", function="Block.forward"
    )
    rows = {(row.vela.operator, row.tosa and row.tosa.operator, row.source) for row in delegate.operations}
    assert ("Conv2D", "CONV2D", conv) in rows
    assert all(source == conv for _, _, source in rows)  # the transposes around it are its own


def test_a_reason_is_said_in_words_of_the_model(run: Run) -> None:
    done = run("""\
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                return (x > 0).float() + 0.5 * x
        example_inputs = torch.linspace(-1, 1, 8).view(1, 8)
    """)
    (cast,) = [row for row in done.record["cpu_operators"] if "_to_dim_order_copy" in row["name"]]
    assert [site["reason"] for site in cast["sites"]] == ["the NPU does not convert bool to float32"]


def test_without_delegation_the_user_is_the_reason(run: Run) -> None:
    done = run(NET, delegate=False, quantize="none")
    reasons = {site["reason"] for row in done.record["cpu_operators"] for site in row["sites"]}
    assert reasons == {"delegation was switched off"}


@pytest.mark.parametrize(
    ("name", "target"),
    [("ds_cnn", "ethos-u55-128"), ("ds_cnn", "ethos-u65-256"), ("digits_cnn", "ethos-u85-256")],
)
def test_offsets_are_those_of_npu_operations(zoo_pte: ZooPte, name: str, target: str) -> None:
    """The oracle is the command stream itself: opcodes 2 to 7 start the NPU's blocks, 16 its DMA."""
    output = zoo_pte(name, target)
    for row, delegate in zip(output.delegates, pte.read(output.pte).plan("forward").delegates, strict=True):
        assert delegate.vela is not None
        stream = bytes(delegate.vela.command_stream)
        graph = tosa_graph.read_operators(output.pte.with_name(row.files.tosa).read_bytes())
        offsets = [offset for operation in row.operations for offset in operation.offsets]
        assert len(set(offsets)) == len(offsets) > 0
        for offset in offsets:
            assert int.from_bytes(stream[offset : offset + 2], "little") & 0x3FF in (2, 3, 5, 6, 7, 16)
        for operation in row.operations:
            assert operation.source is not None
            assert operation.tosa is not None
            assert graph[operation.tosa.index].name == operation.tosa.operator
            assert graph[operation.tosa.index].outputs[0] == operation.tosa.tensor
        each = (part for operation in row.operations for part in operation.estimates)
        (macs,) = (part.value for part in row.estimates if part.name == "macs")
        assert sum(part.value for part in each if part.name == "macs") == macs > 0


def test_scales_per_tensor_and_per_channel(run: Run) -> None:
    """One channel has weights a hundred times larger: with one scale for all, the others are coarse."""
    runs = {per: run(NET, "Block", quantize_per=per) for per in ("channel", "tensor")}
    exact = first_channel(run(NET, "Block", quantize="none", delegate=False))
    errors = {per: float(np.abs(first_channel(done) - exact).max()) for per, done in runs.items()}
    assert errors["tensor"] > errors["channel"]
    for per, done in runs.items():
        assert done.record["options"]["quantize_per"] == per


def first_channel(done: Compiled) -> Any:
    """The first channel of the program's first output."""
    with np.load(done.output.io) as arrays:
        return arrays["output0"][0, 0]


def test_calibration_samples_of_the_model_file(run: Run) -> None:
    example = run(NET, "Block")
    assert example.record["calibration"] == {"source": "example", "samples": 1}
    (warning,) = example.record["warnings"]
    assert "No calibration data was given" in warning
    for text in (
        "def calibration():\n    for n in range(3): yield example_inputs * (n + 1)\n",
        "calibration_inputs = [(example_inputs * n,) for n in (1, 2, 3)]\n",
    ):
        done = run(NET + text, "Block")
        assert done.record["calibration"] == {"source": "model", "samples": 3}
        assert done.record["warnings"] == []
        assert done.output.pte_sha256 != example.output.pte_sha256


def test_a_configuration_file_of_the_users(run: Run, tmp_path: Path) -> None:
    ini = tmp_path / "my board.ini"
    ini.write_text(INI)
    target = Target("ethos-u65", 256, "Board", "Tight")
    # With int8 the NPU transposes: something lies in the fast scratch.
    done = run(NET, "Block", vela_config=ini, target=target, io="int8")
    estimates = {row["name"]: row["value"] for row in done.record["delegates"][0]["estimates"]}
    assert estimates["core_clock"] == 123e6
    assert 0 < done.output.delegates[0].fast_scratch_bytes <= 4096
    assert ("vela configuration", "my board.ini") in {
        (row["role"], row["file"]) for row in done.record["provenance"]["inputs"]
    }
    content = done.output.pte.read_bytes()
    assert str(tmp_path).encode() not in content
    assert b"--system-config=Board" in content
    again = tmp_path / "elsewhere.ini"
    again.write_text(INI)
    same = run(NET, "Block", vela_config=again, target=target, io="int8")
    assert same.output.pte_sha256 == done.output.pte_sha256


def test_a_flag_for_vela(run: Run) -> None:
    plain, small = (run(NET, "Block", vela_flags=flags) for flags in ((), ("--optimise=Size",)))
    assert small.record["options"]["vela_flags"] == ["--optimise=Size"]
    assert b"--optimise=Size" in small.output.pte.read_bytes()
    assert small.output.delegates[0].scratch_bytes <= plain.output.delegates[0].scratch_bytes


def test_a_program_that_was_quantised_before_is_taken_as_it_is(run: Run, tmp_path: Path) -> None:
    import torch

    from ethosu_sdk.compile import lowering, quantizing

    inputs = (torch.linspace(-1, 1, 12).view(1, 3, 2, 2),)
    program = torch.export.export(torch.nn.Conv2d(3, 4, 1).eval(), inputs)
    prepared = quantizing.prepare_module(program, lowering.compile_spec(U55), "int8")
    prepared(*inputs)
    quantised = torch.export.export(quantizing.convert_module(prepared), inputs)
    torch.export.save(quantised, tmp_path / "quantised.pt2")
    (tmp_path / "out").mkdir()
    options = ProgramOptions(io="int8")
    request = CompileRequest(str(tmp_path / "quantised.pt2"), U55, tmp_path / "out", options=options)
    output = worker.run_stages(request, lambda stage: None)
    assert (output.prequantized, output.quantize, output.calibration_source) == (True, "none", "none")
    assert (len(output.delegates), output.cpu_operators, output.warnings) == (1, (), ())
    assert output.inputs[0].dtype == "int8"
    with pytest.raises(UsageError, match="is quantised already"):
        worker.run_stages(replace(request, options=replace(options, quantize="int8")), lambda stage: None)


def test_full_delegation_is_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = CompileOptions("ethos-u55-128", require_full_delegation=True)
    with pytest.raises(VerdictError) as caught, warm.compilers():
        compile_command.compile_model("zoo:softmax", options, tmp_path, Reporter(as_json=True))
    assert caught.value.exit_code == 7
    assert "aten::_softmax.out (1) on the CPU: " in caught.value.message
    record = json.loads(capsys.readouterr().out)
    assert record["cpu_operators"][0]["name"] == "aten::_softmax.out"
    assert read(tmp_path / "softmax.compile.json") == record
    # The next command takes the result as it is, and the demand still holds.
    with pytest.raises(VerdictError):
        compile_command.compile_model("zoo:softmax", options, tmp_path, Reporter(verbose=True), reuse=True)
    assert "up to date" in capsys.readouterr().err
