"""What Vela itself writes, `_vela.tflite` and the raw `.npz`: inspected, run and priced.

Expected outputs are those of the original `.tflite` in an interpreter that is not ours.
"""

import json
import random
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from campaigns.attack import damage
from ethosu_sdk.analysis import inspect_command
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile.tflite import reference
from ethosu_sdk.compile.vela_versions import run_vela
from ethosu_sdk.program import vela_output
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.tables import each
from tests.tflite_files import Model

_SYSTEMS = {
    "ethos-u55-128": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u65-256": ("Ethos_U65_High_End", "Dedicated_Sram"),
    "ethos-u85-256": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram"),
}


def _network(path: Path, between: str = "") -> Path:
    """Two convolutions, of which both results are outputs; `between` is an operator that Vela leaves to the CPU."""
    choice = np.random.default_rng(1)
    model = Model()
    last = model.input("x", (1, 8, 8, 4), "int8", 0.05, -3)
    for number, depth in enumerate((16, 8)):
        if number and between:
            shape = last.shape
            last = model.operator(between, [last], model.tensor(shape, "int8", 1 / 128, 0))
        weights = choice.integers(-127, 128, (depth, 3, 3, last.shape[3]), np.int8)
        scales = choice.uniform(0.001, 0.002, depth).astype(np.float32)
        kernel = model.constant(weights, scales)
        bias = model.constant(choice.integers(-500, 500, depth).astype(np.int32), last.scale[0] * scales)
        result = model.tensor((1, 8, 8, depth), "int8", 0.05, 4)
        options = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
        last = model.operator("CONV_2D", [last, kernel, bias], result, **options)
        model.output(last)
    return model.write(path)


def _vela(source: Path, target: str, form: str) -> Path:
    system, mode = _SYSTEMS[target]
    words = ["--accelerator-config", target, "--system-config", system, "--memory-mode", mode]
    words += [
        "--config",
        "Arm/vela.ini",
        "--output-format",
        form,
        "--output-dir",
        str(source.parent),
        str(source),
    ]
    run_vela("", words, source.parent)
    (made,) = source.parent.glob(f"{source.stem}_vela*.{'npz' if form == 'raw' else 'tflite'}")
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="the interpreters are Linux's")
@each("target, form", (("ethos-u55-128", "raw"), ("ethos-u65-256", "tflite"), ("ethos-u85-256", "tflite")))
def test_outputs_are_those_of_the_original(target: str, form: str, tmp_path: Path) -> None:
    source = _network(tmp_path / "net.tflite")
    made = _vela(source, target, form)
    given = np.random.default_rng(2).integers(-128, 128, (1, 8, 8, 4), np.int8)
    micro, *_ = reference.readings(source, [[given]])
    assert micro.outputs, micro
    np.savez(tmp_path / "given.npz", input0=given)
    wanted = {f"output{number}": array for number, array in enumerate(micro.outputs[0])}
    np.savez(tmp_path / "wanted.npz", **wanted)
    words = ("--inputs", "given.npz", "--expect", "wanted.npz", "--simulator", "host")
    system = ("--system-config", _SYSTEMS[target][0])
    record = json.loads(sdk_ok("run", made.name, *words, *system, "--json", cwd=tmp_path).out)
    assert record["status"] == "pass"
    assert record["target"]["npu"] == target.rpartition("-")[0]
    wanted["output0"].flat[5] ^= 1
    np.savez(tmp_path / "wanted.npz", **wanted)
    assert sdk("run", made.name, *words, *system, cwd=tmp_path).code == 7


def test_the_two_forms_say_the_same(tmp_path: Path) -> None:
    source = _network(tmp_path / "net.tflite")
    raw, flat = (vela_output.read(_vela(source, "ethos-u65-256", form)) for form in ("raw", "tflite"))
    (one,), (other,) = raw.delegates, flat.delegates
    assert one.vela is not None
    assert other.vela is not None
    assert bytes(one.vela.command_stream) == bytes(other.vela.command_stream)
    assert bytes(one.vela.weights) == bytes(other.vela.weights)
    assert (one.vela.inputs, one.vela.outputs) == (other.vela.inputs, other.vela.outputs)


def test_profile_and_check_take_it(tmp_path: Path) -> None:
    made = _vela(_network(tmp_path / "net.tflite"), "ethos-u55-128", "raw")
    system = ("--system", "corstone-300-fvp")
    record = json.loads(sdk_ok("profile", made.name, *system, "--json", cwd=tmp_path).out)
    assert [row["kind"] for row in record["operations"]].count("conv") >= 2
    assert record["priced"]["compiled_for"]
    sdk_ok("check", made.name, "--board", "alif-e7-he", cwd=tmp_path)
    refused = sdk("run", made.name, "--target", "ethos-u85-256", cwd=tmp_path)
    assert_clear(refused, 2, "is for ethos-u55-128, not ethos-u85-256")
    assert_clear(sdk("run", made.name, "--io", "int8", cwd=tmp_path), 2, "is compiled already, by Vela")


def test_an_operator_on_the_cpu_is_listed_and_refused(tmp_path: Path) -> None:
    made = _vela(_network(tmp_path / "net.tflite", "L2_NORMALIZATION"), "ethos-u55-128", "tflite")
    (method,) = inspect_command.inspect_file(made).methods
    assert [row.name for row in method.operators] == ["L2_NORMALIZATION"]
    assert [row.runs_on for row in method.instructions] == ["NPU", "CPU", "NPU"]
    assert_clear(sdk("run", made.name, cwd=tmp_path), 3, "L2_NORMALIZATION")


@each("form", ("raw", "tflite"))
def test_damage_is_told(form: str, tmp_path: Path) -> None:
    made = _vela(_network(tmp_path / "net.tflite"), "ethos-u55-128", form)
    choice, read = random.Random(form), 0
    for number in range(100):
        path = tmp_path / f"{number}{made.suffix}"
        path.write_bytes(damage.damaged(choice, made.read_bytes()))
        try:
            inspect_command.inspect_file(path)
            read += 1
        except InputError:
            continue
    assert read < 100


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    """Vela before 5 stores some, beside arrays of bytes; what is in them is not read."""
    made = _vela(_network(tmp_path / "net.tflite"), "ethos-u55-128", "raw")
    with np.load(made) as archive:
        names = [name for name in archive.files if not name.endswith("_quantization")]
        arrays = {name: archive[name] for name in names}
    for name in ("cmd_data", "weight_data"):
        arrays[name] = np.array(arrays[name].tobytes())
    np.savez(tmp_path / "old.npz", **arrays)
    with zipfile.ZipFile(tmp_path / "old.npz", "a") as archive:
        head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
        archive.writestr("input_quantization.npy", b"\x93NUMPY\x01\x00v\x00" + head + b"cos\nabort\n(tR.")
    old, new = (vela_output.read_raw(path).payload for path in (tmp_path / "old.npz", made))
    assert old == new
