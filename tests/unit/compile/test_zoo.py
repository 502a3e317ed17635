"""The zoo without torch: its table, the packages that pretrained models come in, what inputs are made of."""

import hashlib
import importlib.metadata
import re
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import ToolError, UsageError
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.zoo import packages, pretrained
from tests.places import ROOT

DOCUMENT = ROOT / "docs" / "reference" / "zoo.md"
PRETRAINED = ("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "crepe_tiny")


def test_every_entry_is_whole_and_says_what_its_weights_are() -> None:
    assert len(set(zoo.names())) == len(zoo.names())
    for entry in zoo.entries():
        source = zoo.source(entry.name).read_text(encoding="utf-8")
        assert f"def {entry.function}() -> ZooModel:" in source
        assert entry.quantize in ("int8", "int16", "none")
        assert 20 < len(entry.summary) < 120
    for entry in zoo.entries():
        words = [word for word in ("random weights", "pretrained", "trained on") if word in entry.summary]
        assert [word.split()[0] for word in words] == [entry.weights] * (entry.weights != "none"), entry.name
        assert (entry.weights == "none") == (entry.parameters == 0)
        assert (entry.weights == "pretrained") == bool(entry.needs)
    assert tuple(entry.name for entry in zoo.entries() if entry.needs) == PRETRAINED


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("mtcn_pnet", "mtcnn_pnet"),
        ("crepe", "crepe_tiny"),
        ("Resnet8", "resnet8"),
        ("mobilenet_v1_25", "mobilenet_v1_025"),
    ],
)
def test_a_mistyped_name_gets_the_one_meant(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_model_spec(f"zoo:{typed}")
    assert caught.value.hint.startswith(f"did you mean '{meant}'? one of: ")
    assert all(name in caught.value.hint for name in zoo.names())


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """As if the distribution `missing` were not installed, and every other were."""

    def distribution(name: str) -> None:
        if name == missing:
            raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)


def test_missing_packages_are_one_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "facenet-pytorch")
    with pytest.raises(ToolError) as caught:
        zoo.load("mtcnn_rnet")
    assert caught.value.exit_code == 4
    assert (
        caught.value.message == "zoo:mtcnn_rnet needs Python packages that are not installed: facenet-pytorch"
    )
    words = caught.value.hint.split()
    assert words[:3] == ["pip", "install", "--no-deps"]
    assert [word.split("==")[0] for word in words[3:]] == ["facenet-pytorch", "scikit-image", "pillow"]
    without(monkeypatch, "scikit-image")
    packages.require("zoo:crepe_tiny", zoo.entry("crepe_tiny").needs)
    with pytest.raises(ToolError, match=r"not installed: scikit-image$"):
        packages.require("zoo:mtcnn_pnet", zoo.entry("mtcnn_pnet").needs)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution `zoo-example` that holds ``example/weights``."""
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "weights").write_bytes(b"weights")
    info = tmp_path / "zoo_example-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo-example\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(packages._VERSIONS, "zoo-example", "1.3")
    return tmp_path


def test_a_file_is_found_by_its_content(distribution: Path) -> None:
    digest = hashlib.sha256(b"weights").hexdigest()
    file = packages.PackagedFile("zoo-example", "example/weights", digest)
    assert packages.locate(file) == distribution / "example" / "weights"


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"others"), Path.unlink])
def test_a_file_of_another_version_is_refused(distribution: Path, damage: object) -> None:
    assert callable(damage)
    damage(distribution / "example" / "weights")
    file = packages.PackagedFile("zoo-example", "example/weights", hashlib.sha256(b"weights").hexdigest())
    with pytest.raises(ToolError, match=r"^zoo-example 1\.2 does not have the example/weights") as caught:
        packages.locate(file)
    assert caught.value.hint == "pip install --no-deps zoo-example==1.3"


def test_the_document_tells_models_versions_and_digests() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert packages.install_command() in text
    for entry in zoo.entries():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{entry.name}` |"))
        assert str(list(entry.inputs[0].shape)) in row
        assert entry.weights in row
    sources = "".join(zoo.source(name).read_text(encoding="utf-8") for name in PRETRAINED)
    digests = set(re.findall(r'"([0-9a-f]{64})"', sources))
    assert len(digests) == 5  # the models' weights, and the photograph
    for digest in digests:
        assert digest in text


def test_windows_lie_in_the_photograph() -> None:
    corners = [(window.left, window.top) for window in pretrained.window_grid(256, 128)]
    assert corners == [(left, top) for top in (0, 128, 256) for left in (0, 128, 256)]
    windows = (
        *pretrained.windows_near_face(),
        *pretrained.window_grid(384, 128),
        pretrained.FACE,
        pretrained.WHOLE,
    )
    assert len(set(pretrained.windows_near_face())) == 20
    for window in windows:
        assert 0 <= window.left <= window.left + window.side <= pretrained.PHOTOGRAPH_SIDE
        assert 0 <= window.top <= window.top + window.side <= pretrained.PHOTOGRAPH_SIDE


@pytest.mark.parametrize("frequency_hz", [62.5, 250.0, 1000.0])
def test_a_tone_has_its_period_and_the_networks_range(frequency_hz: float) -> None:
    wave = pretrained.tone(frequency_hz, seed=3)[0].astype(np.float64)
    assert wave.shape == (pretrained.CREPE_FRAME,)
    assert abs(wave.mean()) < 1e-6
    assert abs(wave.std(ddof=1) - 1) < 1e-6
    period = round(pretrained.CREPE_SAMPLE_HZ / frequency_hz)
    assert np.corrcoef(wave[period:], wave[:-period])[0, 1] > 0.99
    half = period // 2
    assert np.corrcoef(wave[half:], wave[:-half])[0, 1] < 0.9
    np.testing.assert_array_equal(wave, pretrained.tone(frequency_hz, seed=3)[0])


def test_pitch_of_a_bin() -> None:
    # CREPE's bins are 20 cents apart and begin at 31.70 Hz (C1 is 32.70 Hz, 53.6 cents above: Kim et al., 2018).
    first, octave = np.eye(pretrained.PITCH_BINS, dtype=np.float32)[[0, 60]]
    assert pretrained.pitch_hz(first[None]) == pytest.approx(31.70, abs=0.005)
    assert pretrained.pitch_hz(octave[None]) == pytest.approx(2 * pretrained.pitch_hz(first[None]))
