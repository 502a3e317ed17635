"""Networks that write in place or keep a state, as people have them: eight steps on QEMU against eager PyTorch."""

from pathlib import Path

import numpy as np
import pytest

from tests import own_qemu as corstone_qemu, warm
from tests.integration.cli import sdk_ok

pytestmark = [
    pytest.mark.torch,
    pytest.mark.qemu,
    pytest.mark.toolchain,
    pytest.mark.filterwarnings("ignore"),
]

MODELS = Path(__file__).with_name("decoders")
STEPS = 8
BOARDS = {"ethos-u55-128": "corstone-300", "ethos-u85-256": "corstone-320"}
# Each on one of the families; int8 of networks this small, with random weights.
NETWORKS = {
    "yolo_head": ("ethos-u55-128", 25.0),
    "temporal_shift": ("ethos-u85-256", 25.0),
    "cache_by_slices": ("ethos-u55-128", 25.0),
    "cache_by_index": ("ethos-u85-256", 25.0),
    "streaming_gru": ("ethos-u55-128", 20.0),
}
# PyTorch alone, in a process of its own. The second outputs are of a model that forgets what it has seen.
REFERENCE = """
import copy, sys, numpy
sys.path.insert(0, sys.argv[1])
file = __import__(sys.argv[2])
inputs = zip(*file.samples)
numpy.savez("in.npz", **{f"input{n}": numpy.stack([x.numpy() for x in xs]) for n, xs in enumerate(inputs)})
forgetful = [copy.deepcopy(file.model)(*[x.clone() for x in xs]).detach().numpy() for xs in file.samples]
outputs = [file.model(*[x.clone() for x in xs]).detach().numpy() for xs in file.samples]
numpy.savez("want.npz", outputs=outputs, forgetful=forgetful)
"""


def decibels(wanted: np.ndarray, found: np.ndarray) -> float:
    """The signal-to-quantisation-noise ratio of a step."""
    return float(10 * np.log10((wanted**2).sum() / max(((found - wanted) ** 2).sum(), 1e-30)))


@pytest.mark.parametrize(
    ("name", "target", "least"),
    [
        pytest.param(name, *row, marks=[] if name.startswith("cache") else [pytest.mark.thorough])
        for name, row in NETWORKS.items()
    ],
)
def test_eight_steps(
    name: str, target: str, least: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    warm.python("-c", REFERENCE, MODELS, name, cwd=tmp_path)
    sdk_ok("compile", MODELS / f"{name}.py", "--target", target, "-o", "out", cwd=tmp_path)
    environment = corstone_qemu.environment(BOARDS[target], request)
    words = ("run", f"out/{name}.pte", "--inputs", "in.npz", "--simulator", "qemu", "-o", "out")
    sdk_ok(*words, cwd=tmp_path, env=environment)
    found = np.load(tmp_path / "out" / "outputs.npz")["output0"]
    want = np.load(tmp_path / "want.npz")
    assert found.shape == want["outputs"].shape
    assert len(found) == STEPS
    ratios = [decibels(*pair) for pair in zip(want["outputs"], found, strict=True)]
    assert min(ratios) >= least, ratios
    # What a network sees that forgets is another sequence, and further from what was found.
    forgetful, outputs = want["forgetful"][1:], want["outputs"][1:]
    if not np.array_equal(forgetful, outputs):
        assert decibels(outputs, found[1:]) > decibels(forgetful, found[1:]) + 6
