"""PyTorch → `.pte`, for real: the zoo, users' files, determinism, silence, a compiler process that fails."""

import csv
import hashlib
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base.errors import BuildError, InputError, UsageError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import acceleration, zoo
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import STAGES, CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.program import pte
from tests import processes, warm
from tests.conftest import ZooPte
from tests.integration.compile.sources import TWO_INPUTS

pytestmark = pytest.mark.torch

U55 = parse_target("ethos-u55-128")
QUANTIZE = "quantized_decomposed::quantize_per_tensor.out"
DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor.out"
IN_ORDER = (
    "dim_order_ops::_clone_dim_order.out"  # the channels of an image behind its pixels, as it is quantised
)

# model → operators on the CPU, number of delegates: on Ethos-U55-128, with float inputs and outputs
ZOO: dict[str, tuple[dict[str, int], int]] = {
    "add": ({}, 1),
    "softmax": ({"aten::_softmax.out": 1}, 0),
    "digits_cnn": ({QUANTIZE: 1, DEQUANTIZE: 1}, 1),
    "ds_cnn": ({QUANTIZE: 2, DEQUANTIZE: 2, "aten::avg_pool2d.out": 1}, 2),
    "mobilenet_v2": ({QUANTIZE: 1, DEQUANTIZE: 1, IN_ORDER: 1}, 1),
    "resnet8": ({QUANTIZE: 1, DEQUANTIZE: 1, IN_ORDER: 1}, 1),
    "mobilenet_v1_025": ({QUANTIZE: 1, DEQUANTIZE: 1, IN_ORDER: 1}, 1),
    "deep_autoencoder": ({QUANTIZE: 1, DEQUANTIZE: 1}, 1),
    "mtcnn_pnet": ({QUANTIZE: 1, DEQUANTIZE: 2, IN_ORDER: 1}, 1),
    "mtcnn_rnet": ({QUANTIZE: 1, DEQUANTIZE: 2, IN_ORDER: 1}, 1),
    "mtcnn_onet": ({QUANTIZE: 1, DEQUANTIZE: 3, IN_ORDER: 1}, 1),
    "crepe_tiny": ({QUANTIZE: 1, DEQUANTIZE: 1}, 1),
}


@pytest.fixture
def two_inputs(tmp_path: Path) -> Path:
    path = tmp_path / "two inputs.py"
    path.write_text(TWO_INPUTS)
    return path


def compiled(model: str | Path, folder: Path, **options: Any) -> CompileOutput:
    """The program for Ethos-U55-128, with other options than the usual."""
    with warm.compilers():
        return compile_model(CompileRequest(str(model), U55, folder, options=ProgramOptions(**options)))


def stored(output: CompileOutput) -> dict[str, NDArray[Any]]:
    with np.load(output.io) as arrays:
        return {name: arrays[name] for name in arrays.files}


@pytest.mark.parametrize("name", zoo.stateless())
def test_zoo_model(zoo_pte: ZooPte, name: str) -> None:
    output = zoo_pte(name)
    operators, delegates = ZOO[name]
    assert {row.name: row.calls for row in output.cpu_operators} == operators
    assert len(output.delegates) == delegates
    assert output.methods == ("forward",)
    assert output.pte.name == f"{name}.pte"
    data = output.pte.read_bytes()
    assert (output.pte_sha256, output.pte_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
    program = pte.parse(data)
    assert program.target() == (U55 if delegates else None)
    plan = program.plan("forward")
    for facts, tensors in ((output.inputs, plan.input_tensors()), (output.outputs, plan.output_tensors())):
        assert [(row.dtype, row.shape, row.dim_order) for row in facts] == [
            (tensor.dtype, tensor.sizes, tensor.dim_order) for tensor in tensors
        ]
    arrays = stored(output)
    expected = [(f"input{i}", row) for i, row in enumerate(output.inputs)]
    expected += [(f"output{i}", row) for i, row in enumerate(output.outputs)]
    assert set(arrays) == {key for key, _ in expected}
    for key, row in expected:
        assert (str(arrays[key].dtype), arrays[key].shape) == (row.dtype, row.shape)
    assert set(output.timings_s) <= set(STAGES)
    assert bool(output.warnings) == (delegates == 0)


@pytest.mark.parametrize("name", [name for name, (_, delegates) in ZOO.items() if delegates])
def test_delegate_artefacts(zoo_pte: ZooPte, name: str) -> None:
    output = zoo_pte(name)
    folder = output.pte.parent
    delegates = pte.read(output.pte).plan("forward").delegates
    assert len(delegates) == len(output.delegates)
    for index, (row, delegate) in enumerate(zip(output.delegates, delegates, strict=True)):
        assert (row.index, row.files.tosa) == (index, f"delegate{index}.tosa")
        assert (folder / row.files.tosa).is_file()
        assert hashlib.sha256(delegate.payload).hexdigest() == row.payload_sha256
        assert len(delegate.payload) == row.payload_bytes
        assert delegate.vela is not None
        assert delegate.vela.scratch_bytes == row.scratch_bytes
        assert row.estimates[0].name == "total_cycles"
        assert row.estimates[0].value > 0
        assert row.fast_scratch_bytes == 0  # Shared_Sram has no staging buffer
        for report in (row.files.summary, row.files.per_layer, row.files.debug):
            assert (folder / report).stat().st_size > 0


def test_the_digits_model_has_learnt_its_task() -> None:
    result = warm.python(
        "-c",
        """if True:
        from ethosu_sdk.compile import zoo
        import torch
        images, labels = zoo.digits.held_back()
        model = zoo.load("digits_cnn").module
        print(images.shape, images.dtype, labels.dtype, float(images.min()), float(images.max()))
        print((model(torch.from_numpy(images)).argmax(1).numpy() == labels).mean())
        """,
    )
    shape, accuracy = result.stdout.splitlines()
    assert shape == "(360, 1, 8, 8) float32 int64 0.0 1.0"
    assert float(accuracy) > 0.97


def in_child(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return processes.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        check=True,
        timeout_s=300,
        env=environment,
    )


def test_listing_the_zoo_is_light() -> None:
    result = in_child(
        "import sys; from ethosu_sdk.compile import zoo; zoo.names(); zoo.entries()\n"
        "print({'torch', 'executorch', 'sklearn'} & set(sys.modules))"
    )
    assert result.stdout == "set()\n"


COMPILE = """
import sys
from pathlib import Path
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.base.targets import parse_target
folder, model, target, quantize = sys.argv[1:]
options = ProgramOptions(quantize=quantize)
request = CompileRequest(model, parse_target(target), Path(folder), options=options)
compile_model(request, lambda stage: print("stage", stage))
"""


def debug_tables(path: Path) -> dict[str | None, list[dict[str, str]]]:
    """The tables of Vela's debug database, whose columns it puts in an order that varies."""
    return {
        table.get("name"): list(csv.DictReader((table.text or "").strip().splitlines()))
        for table in ElementTree.parse(path).iter("table")
    }


@pytest.mark.parametrize(
    ("model", "target", "quantize"),
    [("zoo:digits_cnn", "ethos-u55-128", "int8"), (None, "ethos-u85-256", "int16")],
)
def test_same_bytes_from_two_processes_one_without_the_short_cuts_and_nothing_printed(
    two_inputs: Path, tmp_path: Path, model: str | None, target: str, quantize: str
) -> None:
    folders = [tmp_path / "one", tmp_path / "another folder" / "below"]

    def compile_in(number: int) -> subprocess.CompletedProcess[str]:
        arguments = (str(folders[number]), model or str(two_inputs), target, quantize)
        switch = {acceleration.SWITCH: str(number)}
        return in_child(COMPILE, *arguments, PYTHONHASHSEED=str(number + 1), **switch)

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(compile_in, range(len(folders))))
    for result in results:
        stages, details = [], []
        for line in result.stdout.splitlines():
            (details if ": " in line else stages).append(line)
        names = ("import of PyTorch and ExecuTorch", *STAGES[1:])
        assert stages == [f"stage {name}" for name in names if name not in ("compare", "evaluate", "check")]
        assert details[-1] == "stage lower: delegate 1, Vela"
        assert all(re.fullmatch(r"stage lower: delegate 1, pass \d+ of \d+", line) for line in details[:-1])
        assert result.stderr == ""
    first, second = (
        {
            path.name: debug_tables(path) if path.suffix == ".xml" else path.read_bytes()
            for path in folder.iterdir()
            if path.name != "compile.log"
        }
        for folder in folders
    )
    name = "two_inputs" if model is None else "digits_cnn"
    reports = {f"delegate0.{kind}" for kind in ("tosa", "summary.csv", "per-layer.csv", "debug.xml")}
    assert first.keys() == {f"{name}.pte", f"{name}.io.npz", *reports}
    assert first == second
    # Vela prints its summary on file descriptor 1: it must be in the log for this test to mean anything.
    assert "Network summary" in (folders[0] / "compile.log").read_text()
    for folder in folders:
        assert str(tmp_path).encode() not in (folder / f"{name}.pte").read_bytes()


def test_int8_inputs_and_outputs(two_inputs: Path, tmp_path: Path) -> None:
    output = compiled(f"{two_inputs}:Net", tmp_path / "out", io="int8")
    assert output.name == "two_inputs"
    assert output.cpu_operators == ()
    assert [row.dtype for row in (*output.inputs, *output.outputs)] == ["int8"] * 4
    arrays = stored(output)
    assert arrays["input0"].dtype == np.int8
    # The example spans the whole calibrated range, so quantised it spans int8.
    assert (arrays["input0"].min(), arrays["input0"].max()) == (-128, 127)
    assert "input1_scale" in output.methods
    assert any("example inputs alone" in warning for warning in output.warnings)


def test_calibration_and_inputs_from_files(two_inputs: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    stacks = {f"input{i}": generator.normal(size=(6, 3, 4, 4)).astype(np.float32) for i in range(2)}
    np.savez(tmp_path / "calibration.npz", **stacks)
    np.savez(tmp_path / "inputs.npz", **{name: stack[:1] for name, stack in stacks.items()})
    files = {"calibration": (tmp_path / "calibration.npz",) * 2, "inputs": tmp_path / "inputs.npz"}
    output = compiled(two_inputs, tmp_path / "out", **files)
    assert (output.calibration_source, output.calibration_samples) == ("file", 12)
    assert output.warnings == ()
    arrays = stored(output)
    np.testing.assert_array_equal(arrays["input1"], stacks["input1"][:1])
    # Calibration worked: the second output is close to what it approximates, but int8 is not exact.
    exact = arrays["input0"] - 2 * arrays["input1"]
    error = np.abs(arrays["output1"] - exact).max()
    assert 0 < error < (exact.max() - exact.min()) / 50


def test_nothing_delegated_on_request(two_inputs: Path, tmp_path: Path) -> None:
    output = compiled(two_inputs, tmp_path / "out", delegate=False)
    assert output.delegates == ()
    assert "aten::convolution.out" in {row.name for row in output.cpu_operators}
    assert b"vela_bin_stream" not in output.pte.read_bytes()


def test_exported_program(two_inputs: Path, tmp_path: Path) -> None:
    in_child(
        """
        import runpy, sys, torch
        user = runpy.run_path(sys.argv[1])
        torch.export.save(torch.export.export(user["Net"]().eval(), user["example_inputs"]), sys.argv[2])
        """,
        str(two_inputs),
        str(tmp_path / "saved.pt2"),
    )
    outputs = [compiled(source, tmp_path / source.stem) for source in (tmp_path / "saved.pt2", two_inputs)]
    saved, direct = (stored(output) for output in outputs)
    assert saved.keys() == direct.keys()
    for name, value in direct.items():
        np.testing.assert_array_equal(saved[name], value)


def test_wrong_inputs_are_refused_and_leave_nothing(two_inputs: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", input0=np.zeros((1, 3, 4, 4)), input1=np.zeros((1, 3, 4, 4)))
    with pytest.raises(InputError, match=r"input0 in .* is float64, but the model takes float32"):
        compiled(two_inputs, tmp_path / "out", inputs=tmp_path / "wrong.npz")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["compile.log"]


def test_int8_io_of_an_unquantised_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--io int8 needs a quantised model"):
        compiled("zoo:softmax", tmp_path, io="int8")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os; os._exit(41)", "status 41"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "by SIGSEGV (one of its tools crashed)",
        ),
    ],
)
def test_compiler_process_that_dies(tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "dies.py"
    path.write_text(f"print('last words', flush=True)\n{body}\n")
    with pytest.raises(BuildError) as caught:
        compile_model(CompileRequest(str(path), U55, tmp_path / "out"))
    assert words in caught.value.message
    assert "last words" in caught.value.message


def test_compiler_process_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="did not end within 1 s"):
        compile_model(CompileRequest("zoo:add", U55, tmp_path / "out", timeout_s=1.0))
    # The request is on the worker's command line, and with it the folder of this test.
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in commands if str(tmp_path).encode() in line]
