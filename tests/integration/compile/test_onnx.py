"""ONNX files: converted as onnxruntime computes them, run on QEMU, and refused with the operator's name."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.front_ends import onnx_model
from ethosu_sdk.compile.graphs import execution
from tests import onnx_models as made
from tests.integration.cli import assert_clear, sdk, sdk_ok

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

constant, weights = made.constant, made.weights
INT = "int64"
FORMS = {
    "convolutions": made.convolutions(),
    "convolutions of 21": made.convolutions(21),
    "inputs and outputs": made.two_inputs(),
    "attention": made.attention(),
    "attention of 22": made.attention(22),
    "linear": made.resized(mode="linear", coordinate_transformation_mode="half_pixel"),
    "nearest": made.resized(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "shapes": made.computed_shapes(),
    "shapes of 18": made.computed_shapes(18),
    "split": made.one_operator("Split", shape=(1, 8, 2), opset=18, outputs=3, axis=1, num_outputs=3),
    "mean": made.one_operator("ReduceMean", constant("axes", [2, 3], INT), opset=18),
    "pad": made.one_operator("Pad", constant("p", [1, 2, 3, 4], INT), None, constant("a", [2, 3], INT), opset=19),
    "size": made.one_operator("Resize", None, None, constant("s", [9, 9], INT), opset=18, axes=[2, 3], mode="linear"),
    "gelu": made.one_operator("Gelu", opset=20),
    "mish": made.one_operator("Mish", opset=18),
    "groups": made.one_operator("GroupNormalization", weights("s", 4), weights("b", 4), opset=21, num_groups=2),
    "transposed": made.one_operator("ConvTranspose", weights("w", 4, 3, 2, 2), strides=[2, 2]),
    "expand": made.one_operator("Expand", constant("s", [2, 4, 6, 6], INT)),
    "embedding": made.model([made.node("Gather", ["t", "ids"], ["y"])], {"ids": [1, 6]}, ["y"],
                            [weights("t", 10, 8)], kind=made.INT64),
}  # fmt: skip


def onnxruntime_gives(content: Any, inputs: Sequence[Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(content.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [row.name for row in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


@pytest.mark.parametrize("form", FORMS)
def test_the_module_computes_what_onnxruntime_does(form: str, tmp_path: Path) -> None:
    import torch

    path, given = made.saved(tmp_path / "net.onnx", FORMS[form]), None
    if form.startswith("shapes"):
        given = tmp_path / "given.npz"
        np.savez(given, input0=np.random.default_rng(1).standard_normal((2, 3, 9, 7)).astype(np.float32))
    loaded = onnx_model.load_onnx(path, given)
    program = torch.export.export(loaded.module, loaded.example_inputs)
    found = execution.run_eager(program.module(), loaded.example_inputs)
    wanted = onnxruntime_gives(FORMS[form], [item.numpy() for item in loaded.example_inputs])
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (made.one_operator("LSTM", weights("w", 1, 32, 4), weights("r", 1, 32, 8), shape=(5, 1, 4), hidden_size=8),
         ("no LSTM 'it'", "extract_model")),
        (made.one_operator("QuantizeLinear", constant("s", 0.1), constant("z", 0, "int8")),
         ("quantised already (QuantizeLinear 'it')", "--calibration")),
        (made.one_operator("NonZero"), ("NonZero 'it'", "cut the graph")),
        (made.one_operator("Resize", None, constant("s", [1, 1, 0.5, 0.5]), opset=18, mode="linear", antialias=1),
         ("Resize 'it'", "opset_version=17")),
        (made.one_operator("Relu", shape=(1, "channels", "height", 4)),
         ("open sizes: [1, channels, height, 4]", "--inputs")),
        (made.model([made.node("ConstantOfShape", ["n"], ["b"], name="it"), made.node("Add", ["x", "b"], ["y"])],
                    {"x": [1, 4]}, ["y"], [constant("n", [1 << 20, 1 << 20], INT)]), ("too large", "")),
        (made.model([made.node("Own", ["x"], ["y"], name="it", domain="com.example")], {"x": [1, 4]}, ["y"]),
         ("com.example", "Own 'it'")),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_named(content: Any, words: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        onnx_model.load_onnx(made.saved(tmp_path / "net.onnx", content), None)
    assert all(word in f"{caught.value.message} {caught.value.hint}" for word in words)


def damaged(data: bytes, seed: int) -> bytes:
    source, found = np.random.default_rng(seed), bytearray(data)
    for place in source.integers(0, len(found), source.integers(1, 6)):
        found[place] ^= 1 << source.integers(0, 8)
    return bytes(found[: source.integers(1, len(found))] if seed % 4 == 0 else found)


@pytest.mark.parametrize("form", ["convolutions", "shapes of 18", "groups"])
def test_damaged_files_are_refused_or_run(form: str, tmp_path: Path) -> None:
    path, data = tmp_path / "net.onnx", FORMS[form].SerializeToString()
    given = tmp_path / "given.npz"
    np.savez(given, input0=np.ones((1, 4, 6, 6) if form == "groups" else (1, 3, 16, 16), np.float32))
    refused = 0
    for seed in range(24):
        path.write_bytes(damaged(data, seed))
        try:
            onnx_model.load_onnx(path, given)
        except InputError:
            refused += 1
    assert refused


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/passwd", "link.bin", "absent.bin", "short.bin"])
def test_weights_in_other_files_are_read_from_the_models_folder_alone(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path, content = folder / "net.onnx", made.convolutions()
    (tmp_path / "weights.bin").write_bytes(bytes(4096))
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    (folder / "short.bin").write_bytes(bytes(8))
    onnx.save(content, path, save_as_external_data=True, location="beside.bin", size_threshold=0)
    assert onnx_model.load_onnx(path, None).file.beside == (folder / "beside.bin",)
    stored = onnx.load(path, load_external_data=False)
    next(row for row in stored.graph.initializer[0].external_data if row.key == "location").value = place
    path.write_bytes(stored.SerializeToString())
    with pytest.raises(InputError, match=r"outside of its folder|not there|shorter"):
        onnx_model.load_onnx(path, None)


def compiled(path: Path, folder: Path) -> Any:
    (folder / "check").mkdir()
    request = CompileRequest(str(path), parse_target("ethos-u55-128"), folder, check_folder=folder / "check")
    return worker.run_stages(request, lambda stage: None)


def test_a_module_that_differs_from_the_file_is_refused_with_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weight that is changed between onnxruntime and the module."""
    path, load = made.saved(tmp_path / "net.onnx", made.convolutions()), onnx_model.load_onnx

    def changed(path: Path, given: Path | None) -> onnx_model.OnnxModel:
        found = load(path, given)
        dict(found.module.named_parameters())["conv2/Conv.weight"].data[3, 0, 1, 1] += 0.25
        return dataclasses.replace(found)

    monkeypatch.setattr(onnx_model, "load_onnx", changed)
    with pytest.raises(VerdictError, match=r"onnxruntime, first at Conv 'conv2/Conv'"):
        compiled(path, tmp_path)


def test_an_operator_that_onnx2torch_converts_wrongly_is_refused(tmp_path: Path) -> None:
    """It has the nearest neighbour of other tools as PyTorch's."""
    content = made.resized(
        to=(1, 1, 1.5, 1.5), mode="nearest", nearest_mode="ceil", coordinate_transformation_mode="half_pixel"
    )
    with pytest.raises(VerdictError, match=r"first at Resize 'up'"):
        compiled(made.saved(tmp_path / "net.onnx", content), tmp_path)


@pytest.mark.parametrize(
    ("form", "target"),
    [
        ("convolutions", "ethos-u55-128"),
        pytest.param("inputs and outputs", "ethos-u65-256", marks=pytest.mark.thorough),
        pytest.param("attention of 22", "ethos-u85-256", marks=pytest.mark.thorough),
    ],
)
def test_a_file_runs_on_qemu(form: str, target: str, tmp_path: Path) -> None:
    made.saved(tmp_path / "net.onnx", FORMS[form])
    sdk_ok("run", "net.onnx", "--target", target, "--simulator", "qemu", "-o", "out", cwd=tmp_path)
    record = json.loads((tmp_path / "out/net.compile.json").read_text())
    assert record["chain"]["line"].startswith("onnxruntime → float equal")
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert (run["status"], run["verdict"]["status"]) == ("pass", "pass")
    with np.load(tmp_path / "out/net.io.npz") as kept, np.load(tmp_path / "out/outputs.npz") as given:
        inputs = [kept[f"input{number}"] for number in range(len(record["inputs"]))]
        wanted = onnxruntime_gives(FORMS[form], inputs)
        for number, one in enumerate(wanted):
            assert np.abs(given[f"output{number}"] - one).max() < 0.1 * np.abs(one).max()
    again = sdk_ok("compile", "net.onnx", "--target", target, "-o", "out", "--json", cwd=tmp_path)
    assert json.loads(again.out)["model"]["sha256"] == record["model"]["sha256"]


def test_what_is_no_onnx_file_is_said_before_torch(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x08\x12")
    assert_clear(
        sdk("compile", "net.onnx", "--target", "ethos-u55-128", cwd=tmp_path),
        3,
        "net.onnx is not an ONNX model",
    )
