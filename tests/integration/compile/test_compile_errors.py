"""What goes wrong in a compilation ends with exit code 3 or 5 and one clear sentence, and leaves no result.

The pipeline runs in this process, so that torch is imported once for all cases.
"""

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import BuildError, InputError, SdkError
from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from tests import processes
from tests.integration.compile.refusal import refusal

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

U55 = parse_target("ethos-u55-128")
HEAD = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2
example_inputs = (torch.linspace(-1, 1, 12).view(1, 3, 2, 2),)
"""
INI = """
[System_Config.Board]
core_clock=100e6
axi0_port=Sram
axi1_port=OffChipFlash
[Memory_Mode.Tight]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area={cache}
"""

Compile = Callable[..., SdkError]


@pytest.fixture
def failure(tmp_path: Path) -> Compile:
    """``failure(body, entry="Net", **options)``: the error that the compilation of a file ends with."""

    def run(body: str, entry: str = "Net", target: Target = U55, **options: Any) -> SdkError:
        path = tmp_path / "net.py"
        path.write_text(HEAD + textwrap.dedent(body))
        return refusal(
            CompileRequest(f"{path}:{entry}", target, tmp_path / "out", options=ProgramOptions(**options))
        )

    return run


FORWARD = "class Bad(Net):\n    def forward(self, x): return {}\n"
EXAMPLE = "example_inputs = (torch.{},)\n"


@pytest.mark.parametrize(
    ("body", "entry", "error", "words"),
    [
        ("", "Nett", InputError, "defines no 'Nett'"),
        (
            FORWARD.format("x.view(5)"),
            "Bad",
            InputError,
            "the model's forward failed on the example inputs",
        ),
        (EXAMPLE.format("ones(1, 3, dtype=torch.bfloat16)"), "Net", InputError, "input 0 is bfloat16"),
        (EXAMPLE.format("ones(1, 3, dtype=torch.complex64)"), "Net", InputError, "input 0 is complex64"),
        (EXAMPLE.format("ones(1, 3, dtype=torch.float64)"), "Net", InputError, "is float64, which cannot be"),
        (EXAMPLE.format("ones(0, 3)"), "Net", InputError, "has no elements: its shape is (0, 3)"),
        (
            FORWARD.format("torch.nonzero(x)"),
            "Bad",
            InputError,
            "dynamic shapes: that of aten.nonzero.default is [u0, 4]",
        ),
        (
            FORWARD.format("x if x.sum() > 0 else x * 2"),
            "Bad",
            InputError,
            "control flow or shapes depend on the values of its data",
        ),
        ("calibration = [torch.ones(2)]", "Net", InputError, "input0 in calibration sample 0 of"),
        ("calibration = []", "Net", InputError, "'calibration' of"),
        ("def calibration(): raise KeyError('x')", "Net", InputError, "'calibration' of"),
        ("calibration = 5", "Net", InputError, "cannot be read as a list of samples: TypeError"),
        ("calibration = [{'x': 1}]", "Net", InputError, "sample 0 of 'calibration'"),
    ],
)
def test_a_model_that_cannot_be_compiled(
    failure: Compile, body: str, entry: str, error: type[SdkError], words: str
) -> None:
    caught = failure(body, entry)
    assert type(caught) is error
    assert caught.exit_code in (3, 5)
    assert words in caught.message


def test_an_operator_that_the_runtime_lacks(failure: Compile) -> None:
    caught = failure(
        """
        @torch.library.custom_op("ethosu_sdk_test::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2
        @twice.register_fake
        def _(x):
            return torch.empty_like(x)
        class Own(Net):
            def forward(self, x): return twice(x)
        """,
        "Own",
        quantize="none",
    )
    assert type(caught) is InputError
    assert "ethosu_sdk_test::twice" in caught.message


def test_dynamic_shapes_of_an_exported_program(tmp_path: Path) -> None:
    import torch

    program = torch.export.export(
        torch.nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    torch.export.save(program, tmp_path / "dynamic.pt2")
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(InputError, match=r"dynamic shapes: that of 'input' is \[s\d+, 3\]") as caught:
        worker.run_stages(CompileRequest(str(tmp_path / "dynamic.pt2"), U55, out), lambda stage: None)
    assert "dynamic_shapes" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"input1": np.zeros((4, 3, 2, 2), np.float32)}, "holds input1"),
        ({"x": np.zeros((4, 3, 2, 2), np.float32)}, "holds x"),
        (
            {f"input{i}": np.zeros((4, 3, 2, 2), np.float32) for i in (0, 1)},
            "holds 2 inputs, but the model takes 1",
        ),
        ({"input0": np.zeros((4, 3, 2, 2))}, "is float64, but the model takes float32"),
        ({"input0": np.zeros((4, 3, 3, 2), np.float32)}, "is not a stack of (1, 3, 2, 2)"),
    ],
)
def test_calibration_data_that_does_not_fit(
    failure: Compile, tmp_path: Path, content: dict[str, Any], words: str
) -> None:
    np.savez(tmp_path / "samples.npz", **content)
    caught = failure("", calibration=(tmp_path / "samples.npz",))
    assert type(caught) is InputError
    assert "samples.npz" in caught.message
    assert words in caught.message


def test_vela_refuses_a_configuration(failure: Compile, tmp_path: Path) -> None:
    ini = tmp_path / "board.ini"
    ini.write_text(INI.format(cache="Axi1"))
    target = Target("ethos-u55", 128, "Board", "Tight")
    caught = failure("", vela_config=ini, target=target)
    assert type(caught) is BuildError
    assert caught.message.startswith("Vela refused: ")
    assert "cache_mem_area" in caught.message


def test_vela_ends_the_process(failure: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    from ethosu_sdk.compile import vela_capture

    monkeypatch.setattr(vela_capture, "REPORT_FLAGS", ("--no-such-flag",))
    caught = failure("")
    assert type(caught) is BuildError
    assert caught.message == "Vela refused: vela: error: unrecognized arguments: --no-such-flag"


FILE_LIMIT = """
import resource, sys
from pathlib import Path
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.targets import parse_target
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    compile_model(CompileRequest("zoo:add", parse_target("ethos-u55-128"), Path(sys.argv[1])))
except SdkError as error:
    print(error.exit_code, error.message)
"""


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    done = processes.run(
        [sys.executable, "-c", FILE_LIMIT, tmp_path / "out", "4000"], check=True, timeout_s=300
    )
    assert done.stdout.startswith("5 ")
    assert "cannot be written: File too large" in done.stdout
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["compile.log"]


def test_a_result_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ethosu_sdk.base import npz

    def full(path: Path, arrays: Any) -> None:
        raise BuildError(f"cannot write {path}: No space left on device")

    (tmp_path / "delegate0.tosa").write_bytes(b"old")
    (tmp_path / "delegate7.tosa").write_bytes(b"old")
    monkeypatch.setattr(npz, "write_npz", full)
    with pytest.raises(BuildError, match="No space left"):
        worker.run_stages(CompileRequest("zoo:add", U55, tmp_path), lambda stage: None)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "delegate0.tosa": b"old",
        "delegate7.tosa": b"old",
    }


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot create the folder"):
        compile_model(CompileRequest("zoo:add", U55, tmp_path / "file" / "out"))
