"""``zoo:digits_cnn``: a small CNN trained in seconds on scikit-learn's handwritten digits (1797 images, 8x8).

Training is deterministic for one machine and one set of versions: fixed seeds, one thread. The trained
weights are kept in the SDK's cache, keyed by this recipe and the versions that shape them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base import cache, filesystem, npz
from ethosu_sdk.compile.zoo import packages
from ethosu_sdk.compile.zoo.packages import PackagedFile, ZooModel

_SEED = 1
_HELD_BACK = 360
_CALIBRATION_SAMPLES = 100
_EPOCHS, _BATCH, _LEARNING_RATE = 25, 32, 2e-3
_PIXEL_MAX = 16.0  # the data set's grey levels are 0 to 16

# scikit-learn's own reader of it would import SciPy, which takes a second, and is not in the image.
_FILE = PackagedFile(
    "scikit-learn",
    "sklearn/datasets/data/digits.csv.gz",
    "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22",
)

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


def _split() -> tuple[Images, Labels, Images, Labels]:
    rows = np.loadtxt(packages.locate(_FILE), delimiter=",")  # 64 grey levels and the digit, an image a row
    order = np.random.default_rng(_SEED).permutation(len(rows))
    images = (rows[order, :-1].reshape(-1, 1, 8, 8) / _PIXEL_MAX).astype(np.float32)
    labels = rows[order, -1].astype(np.int64)
    return images[_HELD_BACK:], labels[_HELD_BACK:], images[:_HELD_BACK], labels[:_HELD_BACK]


def held_back() -> tuple[Images, Labels]:
    """The images that training never saw: float32 [360, 1, 8, 8] in 0…1, and their labels, int64 [360].

    Needs scikit-learn, which ships the data set.
    """
    _, _, images, labels = _split()
    return images, labels


def _network(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def _train(images: Images, labels: Labels) -> dict[str, NDArray[np.float32]]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(_SEED)
            module = _network(torch.nn)
            inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
            optimizer = torch.optim.Adam(module.parameters(), lr=_LEARNING_RATE)
            for _ in range(_EPOCHS):
                for batch in torch.randperm(len(inputs)).split(_BATCH):
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(module(inputs[batch]), targets[batch]).backward()
                    optimizer.step()
    finally:
        torch.set_num_threads(threads)
    return {name: value.numpy() for name, value in module.state_dict().items()}


def _weights_key() -> str:
    recipe = hashlib.sha256(Path(__file__).read_bytes())
    for package in ("torch", "scikit-learn", "numpy"):
        recipe.update(f"{package} {importlib.metadata.version(package)}\n".encode())
    return recipe.hexdigest()


def _weights(images: Images, labels: Labels) -> dict[str, NDArray[np.float32]]:
    path = cache.directory_or_own("zoo") / f"digits_cnn-{_weights_key()}.npz"
    with filesystem.locked_folder(path.parent):
        cache.kept(path, lambda place: npz.write_npz(place, _train(images, labels)))
    return npz.read_npz(path)


def build() -> ZooModel:
    """The trained module, its example input (float32 [1, 1, 8, 8], held back) and the calibration samples."""
    import torch

    images, labels, held_images, _ = _split()
    module = _network(torch.nn)
    weights = _weights(images, labels)
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    samples = torch.from_numpy(images[:_CALIBRATION_SAMPLES])
    return ZooModel(
        module.eval(),
        (torch.from_numpy(held_images[:1]),),
        tuple((sample[None],) for sample in samples),
    )
