"""The zoo, for real: every model compiles as its description says, and pretrained ones are what they claim to be."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.compile import zoo
from ethosu_sdk.records import validation
from tests import processes
from tests.conftest import TWO_DELEGATES, ExpectedOutputs, ZooPte
from tests.integration.cli import sdk
from tests.integration.zoo import process as zoo_process

pytestmark = pytest.mark.torch

PRETRAINED = tuple(entry.name for entry in zoo.entries() if entry.needs)
MLPERF_TINY = ("resnet8", "mobilenet_v1_025", "deep_autoencoder")
DELEGATES = {"nothing is delegated": 0, "one delegate": 1}

WITHOUT_FACENET = """
import importlib.metadata
found = importlib.metadata.distribution
def distribution(name):
    if name == "facenet-pytorch":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.distribution = distribution
"""


@pytest.mark.parametrize("name", zoo.stateless())
def test_every_model_compiles_as_its_description_says(zoo_pte: ZooPte, name: str) -> None:
    entry = zoo.entry(name)
    output = zoo_pte(name)
    expected = [count for words, count in DELEGATES.items() if words in entry.summary]
    if name == TWO_DELEGATES:
        assert (expected, len(output.delegates)) == ([1], 2)
    else:
        assert [len(output.delegates)] == expected
    assert output.quantize == entry.quantize
    assert output.calibration_source == ("zoo" if entry.quantize != "none" else "none")
    stays = [row.name for row in output.cpu_operators if not row.boundary]
    assert (stays == []) == (len(output.delegates) == 1)
    assert bool(output.warnings) == (not output.delegates)


@pytest.mark.parametrize("name", MLPERF_TINY)
def test_random_networks_equal_pytorch_closely(
    zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, name: str
) -> None:
    output = zoo_pte(name)
    stored = npz.read_npz(output.io)
    (result,) = expected_outputs(output, [stored["input0"]])
    assert np.unique(result).size > 1
    np.testing.assert_allclose(result, stored["output0"], rtol=0, atol=0.05 * np.ptp(stored["output0"]))


def test_pretrained_networks_equal_those_of_their_packages() -> None:
    found = zoo_process.ask("differences")
    assert set(found) == set(PRETRAINED)
    for name, outputs in found.items():
        assert len(outputs) == {"mtcnn_onet": 3, "crepe_tiny": 1}.get(name, 2)
        for difference, largest in outputs:
            assert difference < 1e-6
            assert largest > 0.05, "an output of zeros proves nothing"


def test_models_are_the_same_in_every_process_and_import_no_package_that_carries_weights() -> None:
    names = (*PRETRAINED, *MLPERF_TINY)
    first, second = (zoo_process.ask("digests", *names, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert first.pop("imported") == []
    assert set(first) == set(names)
    assert len(set(first.values())) == len(names)


def test_the_table_tells_each_models_size_and_inputs() -> None:
    stated = {
        row.name: [row.parameters, [[item.dtype, list(item.shape)] for item in row.inputs]]
        for row in zoo.entries()
    }
    assert zoo_process.ask("shapes") == stated


def test_the_command_lists_every_model(tmp_path: Path) -> None:
    outcome = sdk("zoo", cwd=tmp_path)
    assert outcome.code == 0
    heading, *lines = outcome.out.splitlines()
    assert heading.split() == ["name", "task", "input", "weights", "parameters"]
    assert [line.split()[0] for line in lines] == list(zoo.names())
    assert all(len(line) <= 80 and "…" not in line for line in lines)
    (add, pnet) = (next(line for line in lines if line.startswith(name)) for name in ("add", "mtcnn_pnet"))
    assert add.split()[-4:] == ["int32", "5", "none", "0"]
    assert pnet.split()[-3:] == ["1x3x64x64", "pretrained", "6,632"]
    record = json.loads(sdk("zoo", "--json", cwd=tmp_path).out)
    assert validation.record_problems(record) == []
    assert [row["model"] for row in record["models"]] == [f"zoo:{name}" for name in zoo.names()]
    assert all(row["missing"] == [] for row in record["models"])


def test_the_command_names_packages_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_FACENET)
    outcome = sdk("zoo", "--json", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    rows = {row["name"]: row["missing"] for row in json.loads(outcome.out)["models"]}
    lacking = ["facenet-pytorch==2.6.0"]
    assert rows == {name: lacking if name.startswith("mtcnn") else [] for name in zoo.names()}
    assert "pip install --no-deps facenet-pytorch==2.6.0" in outcome.err


def test_a_missing_package_is_a_missing_tool(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_FACENET)
    outcome = sdk(
        "compile", "zoo:mtcnn_pnet", "-o", "out", "-q", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}
    )
    assert outcome.code == 4
    assert outcome.out == ""
    assert "zoo:mtcnn_pnet needs Python packages that are not installed: facenet-pytorch" in outcome.err
    assert "pip install --no-deps facenet-pytorch==2.6.0" in outcome.err
    assert "Traceback" not in outcome.err
    assert not list(tmp_path.glob("out/*.pte"))


def test_listing_the_zoo_imports_no_package_that_carries_weights() -> None:
    script = (
        "import sys; from ethosu_sdk.compile import zoo; from ethosu_sdk.base.terminal import Reporter\n"
        "zoo.show_zoo(Reporter(quiet=True))\n"
        "print({'torch', 'facenet_pytorch', 'torchcrepe', 'skimage', 'PIL', 'librosa'} & set(sys.modules))"
    )
    done = processes.run([sys.executable, "-c", script], check=True)
    assert done.stdout == "set()\n"
