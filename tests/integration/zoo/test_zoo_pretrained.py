"""Pretrained zoo models do their job after quantisation and compilation, as well as they do in floating point.

What "compiled" computes comes from the independent chain: ExecuTorch's runtime, and the TOSA reference model for what
Vela compiled. What "float" computes comes from PyTorch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from ethosu_sdk.compile.zoo import pretrained
from tests.conftest import ZooPte
from tests.integration import faces
from tests.integration.zoo import process as zoo_process
from tests.oracles import chain
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

Array = NDArray[Any]

# Drawn by eye around the face of scikit-image's `astronaut` (512x512), hairline to chin: left, top, right, bottom
FACE = (180.0, 72.0, 268.0, 184.0)
PHOTOGRAPH = 512
# What the compiled P-Net keeps of float's boxes; measured: 0.950 for a cell, 0.966 for a merged box
CELL_IOU, BOX_IOU = 0.9, 0.9
TONES_HZ = np.geomspace(60.0, 1500.0, 12)


def compiled(zoo_pte: ZooPte, runner: Path, tosa: TosaModel, name: str, inputs: Array) -> list[Array]:
    """The stacked outputs of the compiled model for stacked inputs."""
    output = zoo_pte(name)
    with chain.open_chain(runner, output.pte, chain.tosa_by_payload(output), tosa) as runtime:
        rows = [runtime.run([row]) for row in inputs]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def example(zoo_pte: ZooPte, name: str) -> Array:
    """The model's example input, which `compile` keeps."""
    return np.asarray(npz.read_npz(zoo_pte(name).io)["input0"])


@dataclass(frozen=True)
class Maps:
    """P-Net's maps (boxes, then probabilities), stacked: of the photograph as it is, and mirrored. `scale` is that of
    its input to the photograph."""

    floating: list[Array]
    compiled: list[Array]
    scale: float


@pytest.fixture(scope="module")
def pnet(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel, tmp_path_factory: pytest.TempPathFactory
) -> Maps:
    photograph = example(zoo_pte, "mtcnn_pnet")
    inputs = np.stack([photograph, photograph[..., ::-1]])
    floating = zoo_process.float_outputs("mtcnn_pnet", inputs, tmp_path_factory.mktemp("pnet"))
    found = compiled(zoo_pte, host_runner, tosa, "mtcnn_pnet", inputs)
    return Maps(floating, found, photograph.shape[-1] / PHOTOGRAPH)


@pytest.mark.parametrize(
    ("index", "face"), [(0, FACE), (1, (PHOTOGRAPH - FACE[2], FACE[1], PHOTOGRAPH - FACE[0], FACE[3]))]
)
def test_pnet_finds_the_face(pnet: Maps, index: int, face: tuple[float, ...]) -> None:
    wanted, found = (
        faces.proposals(maps[0][index, 0], maps[1][index, 0], pnet.scale)
        for maps in (pnet.floating, pnet.compiled)
    )
    assert faces.iou(wanted[0].box, face) > 0.6
    assert faces.iou(found[0].box, face) > 0.6
    assert len(found) == len(wanted) > 1
    for proposal in wanted:
        assert max(faces.iou(proposal.box, other.box) for other in found) > BOX_IOU


def test_pnet_keeps_every_cell(pnet: Maps) -> None:
    wanted, found = (
        faces.cells(maps[0][0, 0], maps[1][0, 0], pnet.scale) for maps in (pnet.floating, pnet.compiled)
    )
    assert len(wanted) > 10
    assert wanted.keys() == found.keys()
    for place, proposal in wanted.items():
        assert faces.iou(proposal.box, found[place].box) > CELL_IOU
        assert abs(proposal.score - found[place].score) < 0.15


@pytest.mark.parametrize("name", ["mtcnn_rnet", "mtcnn_onet"])
def test_later_stages_judge_as_in_float(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel, tmp_path: Path, name: str
) -> None:
    face = example(zoo_pte, name)
    noise = np.random.default_rng(1).uniform(-1, 1, face.shape).astype(np.float32)
    halves = np.roll(face, face.shape[-1] // 2, axis=-1)  # the right half beside the left one
    inputs = np.stack([face, face[..., ::-1], halves, noise])
    wanted = zoo_process.float_outputs(name, inputs, tmp_path)
    found = compiled(zoo_pte, host_runner, tosa, name, inputs)
    assert (wanted[-1][:, 0, 1] > 0.7).tolist() == [True, True, False, False]
    np.testing.assert_allclose(found[-1], wanted[-1], rtol=0, atol=0.05)
    for got, want in zip(found[:-1], wanted[:-1], strict=True):  # where there is a face
        np.testing.assert_allclose(got[:2], want[:2], rtol=0, atol=0.03)


def test_crepe_hears_pitches_it_was_not_calibrated_with(
    zoo_pte: ZooPte, host_runner: Path, tosa: TosaModel, tmp_path: Path
) -> None:
    inputs = np.stack([pretrained.tone(float(hz), seed=1000 + n) for n, hz in enumerate(TONES_HZ)])
    (wanted,) = zoo_process.float_outputs("crepe_tiny", inputs, tmp_path)
    (found,) = compiled(zoo_pte, host_runner, tosa, "crepe_tiny", inputs)
    bins, float_bins = found[:, 0].argmax(axis=1), wanted[:, 0].argmax(axis=1)
    assert np.abs(bins - float_bins).max() <= 1
    assert np.abs(found - wanted).max() < 0.1
    pitches = np.array([pretrained.pitch_hz(row) for row in found])
    assert np.abs(1200 * np.log2(pitches / TONES_HZ)).max() < 50
