"""Networks as `.tflite` from their files to the outputs of a run: the same as those of tflite-micro, or of LiteRT's
reference kernels where tflite-micro has no kernel, which the test calls itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.records import read
from tests.tflite_files import Model
from tests.tflite_networks import NETWORKS

Array = NDArray[Any]

TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
#: What is in tier full; the rest is thorough.
FULL = {
    ("rnnoise", "ethos-u55-128", "qemu"),
    ("cpu_operator", "ethos-u55-128", "qemu"),
    ("int16", "ethos-u65-256", "host"),
    ("yolo", "ethos-u85-256", "host"),
}
CASES = [
    pytest.param(
        name,
        target,
        simulator,
        marks=() if (name, target, simulator) in FULL else pytest.mark.thorough,
        id=f"{name}-{target}-{simulator}",
    )
    for name in NETWORKS
    for target in TARGETS
    for simulator in ("host", "qemu")
]


def interpreted(path: Path, inputs: list[Array]) -> list[Array]:
    """The outputs of tflite-micro; of LiteRT where that is not installed or lacks a kernel."""
    try:
        from tflite_micro.python.tflite_micro import runtime

        micro = runtime.Interpreter.from_file(str(path), arena_size=1 << 26)
    except (ImportError, RuntimeError):
        return interpreted_by_litert(path, inputs)
    for index, array in enumerate(inputs):
        micro.set_input(array, index)
    micro.invoke()
    return [micro.get_output(index) for index in range(len(outputs_of(path)))]


def outputs_of(path: Path) -> list[Any]:
    from ai_edge_litert.interpreter import Interpreter

    found: list[Any] = Interpreter(str(path)).get_output_details()
    return found


def interpreted_by_litert(path: Path, inputs: list[Array]) -> list[Array]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    litert = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    litert.allocate_tensors()
    for row, array in zip(litert.get_input_details(), inputs, strict=True):
        litert.set_tensor(row["index"], array)
    litert.invoke()
    return [litert.get_tensor(row["index"]) for row in litert.get_output_details()]


def inputs_of(model: Model, seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    limits = [np.iinfo(one.dtype) for _, one in model.inputs]
    return [
        random.integers(row.min, row.max + 1, one.shape).astype(one.dtype)
        for row, (_, one) in zip(limits, model.inputs, strict=True)
    ]


@pytest.mark.parametrize(("name", "target", "simulator"), CASES)
def test_outputs_are_those_of_the_interpreter(name: str, target: str, simulator: str, tmp_path: Path) -> None:
    model = NETWORKS[name]().model()
    path = model.write(tmp_path / f"{name}.tflite")
    words = ("--target", target, "--simulator", simulator, "-o", "out")
    outcome = sdk_ok("run", path.name, *words, cwd=tmp_path, timeout_s=900)
    assert "equal the .tflite in " in outcome.out
    run = read(tmp_path / "out" / "run.json")
    assert run["verdict"]["status"] == "pass"
    with np.load(tmp_path / "out" / f"{name}.io.npz") as archive:
        inputs = [archive[f"input{index}"] for index in range(len(model.inputs))]
    with np.load(tmp_path / "out" / "outputs.npz") as archive:
        outputs = [archive[f"output{index}"] for index in range(len(model.outputs))]
    expected = interpreted(path, inputs)
    assert any(len(np.unique(array)) > 1 for array in expected)
    for array, wanted in zip(outputs, expected, strict=True):
        assert array.dtype == wanted.dtype
        assert array.tolist() == wanted.tolist()


def test_activations_are_neither_saturated_nor_constant() -> None:
    for name, network in NETWORKS.items():
        made = network()
        model, tensors = made.emit(made.ranges())
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        litert = Interpreter(
            model_content=model.to_bytes(),
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        litert.allocate_tensors()
        for row, array in zip(litert.get_input_details(), inputs_of(model, seed=51), strict=True):
            litert.set_tensor(row["index"], array)
        litert.invoke()
        for node in made.nodes:
            values = litert.get_tensor(tensors[node].index)
            if values.size < 32 or values.dtype == np.float32:
                continue
            limits = np.iinfo(values.dtype)
            assert len(np.unique(values)) > 8, (name, node.kind, tensors[node].name)
            assert np.isin(values, (limits.max,)).mean() < 0.2, (name, node.kind, tensors[node].name)


def test_a_float_model_is_refused_with_the_recipe(tmp_path: Path) -> None:
    NETWORKS["autoencoder"]().emit(None)[0].write(tmp_path / "float.tflite")
    outcome = sdk("compile", "float.tflite", "--target", "ethos-u55-128", cwd=tmp_path)
    assert_clear(outcome, 3, "float.tflite is not quantised", "TFLITE_BUILTINS_INT8")
