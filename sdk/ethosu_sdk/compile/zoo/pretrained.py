"""Zoo models with the pretrained weights that packages carry: the pitch tracker CREPE and the face detector MTCNN,
with the photograph that calibrates it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.compile.zoo import packages
from ethosu_sdk.compile.zoo.packages import PackagedFile, ZooModel

# The network is that of Kim et al., "CREPE: A Convolutional Representation for Pitch Estimation" (2018), with
# torchcrepe's names of the layers. It takes 1024 samples at 16 kHz with mean 0 and standard deviation 1.

CREPE_SAMPLE_HZ = 16000
CREPE_FRAME = 1024
PITCH_BINS = 360
CENTS_PER_BIN = 20.0
FIRST_BIN_CENTS = 1997.3794084376191  # above 10 Hz: torchcrepe's convert.py

_CREPE_WEIGHTS = PackagedFile(
    "torchcrepe",
    "torchcrepe/assets/tiny.pth",
    "d4993eea36ed1a0ad9ac549c740dae5265b049ce72004f00c2f59e01c0be8432",
)
_CREPE_CHANNELS = (1, 128, 16, 16, 16, 32, 64)
_CREPE_FEATURES = 256
_EPSILON = 0.0010000000474974513  # of the batch normalisation

_CREPE_SEED = 8


def tone(frequency_hz: float, seed: int) -> NDArray[np.float32]:
    """A harmonic tone with a little noise as the network's input: float32 [1, 1024], mean 0, deviation 1.

    `seed` draws the phases and how fast the harmonics fade.
    """
    rng = np.random.default_rng(seed)
    time_s = np.arange(CREPE_FRAME) / CREPE_SAMPLE_HZ
    decay = rng.uniform(0.2, 0.9)
    wave = rng.normal(0.0, 0.02, CREPE_FRAME)
    for harmonic in range(1, 9):
        phase = rng.uniform(0, 2 * np.pi)
        if harmonic * frequency_hz < CREPE_SAMPLE_HZ / 2:
            wave += decay ** (harmonic - 1) * np.sin(2 * np.pi * harmonic * frequency_hz * time_s + phase)
    wave -= wave.mean()
    frame: NDArray[np.float32] = (wave / wave.std(ddof=1)).astype(np.float32).reshape(1, CREPE_FRAME)
    return frame


def pitch_hz(probabilities: NDArray[np.float32]) -> float:
    """The pitch of the network's output, float32 [1, 360]: the centre of the most probable bin."""
    cents = CENTS_PER_BIN * int(np.argmax(probabilities)) + FIRST_BIN_CENTS
    return float(10.0 * 2.0 ** (cents / 1200.0))


def _crepe(nn: Any) -> Any:
    class Crepe(nn.Module):  # type: ignore[misc]
        """Six convolutions along time, and a sigmoid for each of 360 pitches."""

        def __init__(self) -> None:
            super().__init__()
            layers = enumerate(itertools.pairwise(_CREPE_CHANNELS), start=1)
            for number, (channels_in, channels_out) in layers:
                kernel, stride = ((512, 1), (4, 1)) if number == 1 else ((64, 1), (1, 1))
                self.add_module(f"conv{number}", nn.Conv2d(channels_in, channels_out, kernel, stride))
                self.add_module(f"conv{number}_BN", nn.BatchNorm2d(channels_out, eps=_EPSILON))
            self.classifier = nn.Linear(_CREPE_FEATURES, PITCH_BINS)

        def forward(self, x: Any) -> Any:
            x = x[:, None, :, None]
            for number in range(1, len(_CREPE_CHANNELS)):
                x = nn.functional.pad(x, (0, 0, 254, 254) if number == 1 else (0, 0, 31, 32))
                x = nn.functional.relu(self.get_submodule(f"conv{number}")(x))
                x = nn.functional.max_pool2d(self.get_submodule(f"conv{number}_BN")(x), (2, 1), (2, 1))
            x = x.permute(0, 2, 1, 3).reshape(-1, _CREPE_FEATURES)
            return self.classifier(x).sigmoid()

    return Crepe()


def crepe_tiny() -> ZooModel:
    """The network, an example of 440 Hz and calibration tones from 40 to 1800 Hz: float32 [1, 1024] to [1, 360]."""
    import torch

    module = _crepe(torch.nn)
    module.load_state_dict(torch.load(packages.locate(_CREPE_WEIGHTS), map_location="cpu", weights_only=True))
    frequencies = np.geomspace(40.0, 1800.0, 40)
    tones = [tone(float(hz), _CREPE_SEED + number) for number, hz in enumerate(frequencies, start=1)]
    return ZooModel(
        module.eval(),
        (torch.from_numpy(tone(440.0, _CREPE_SEED)),),
        tuple((torch.from_numpy(wave),) for wave in tones),
    )


# The photograph that calibrates the face detectors is NASA's portrait of the astronaut Eileen Collins, in the public
# domain, 512x512 pixels, as scikit-image's wheel carries it.

PHOTOGRAPH_SIDE = 512
_PHOTOGRAPH = PackagedFile(
    "scikit-image",
    "skimage/data/astronaut.png",
    "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
)
_GREY, _SPAN = 127.5, 128.0  # MTCNN's networks take (value - 127.5) / 128


@dataclass(frozen=True)
class Window:
    """A square of the photograph, in its pixels: the left and upper edge, and the side."""

    left: int
    top: int
    side: int


WHOLE = Window(0, 0, PHOTOGRAPH_SIDE)
FACE = Window(168, 66, 112)  # from the hairline to the chin


def window_grid(side: int, step: int) -> tuple[Window, ...]:
    """Windows of `side` pixels, `step` pixels apart, row by row."""
    offsets = range(0, PHOTOGRAPH_SIDE - side + 1, step)
    return tuple(Window(left, top, side) for top in offsets for left in offsets)


def windows_near_face() -> tuple[Window, ...]:
    """Windows that hold the face as the first stage of MTCNN finds it: roughly, and in several sizes."""

    def around(side: int) -> Iterator[Window]:
        margin = (side - FACE.side) // 2
        for right, down in ((0, 0), (-8, 0), (8, 0), (0, -8), (0, 8)):
            yield Window(FACE.left - margin + right, FACE.top - margin + down, side)

    return tuple(window for side in (88, 104, 120, 136) for window in around(side))


def load_photograph() -> Any:
    """The photograph as a float32 tensor [1, 3, 512, 512], RGB, in the range of MTCNN's inputs, -1…1."""
    import torch
    from PIL import Image

    with Image.open(packages.locate(_PHOTOGRAPH)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    return ((torch.from_numpy(pixels) - _GREY) / _SPAN).permute(2, 0, 1)[None].contiguous()


def cut_window(photograph: Any, window: Window, size: int) -> Any:
    """The `window` of the `photograph`, scaled to [1, 3, `size`, `size`] by averaging areas, as
    facenet-pytorch does."""
    import torch

    bottom, right = window.top + window.side, window.left + window.side
    part = photograph[:, :, window.top : bottom, window.left : right]
    return torch.nn.functional.interpolate(part, size=(size, size), mode="area")


# The three networks of MTCNN are those of Zhang et al., "Joint Face Detection and Alignment using Multi-task
# Cascaded Convolutional Networks" (2016), with facenet-pytorch's names of the layers, and its order of the outputs.
# Inputs are RGB in -1…1; the boxes are corrections in units of the window, left, top, right, bottom.

PNET_SIZE = 64  # the whole photograph at this size has its face as large as P-Net's window of 12 pixels
_RNET_SIZE, _ONET_SIZE = 24, 48

_MTCNN_WEIGHTS = {
    "pnet": "a2a71925e0b9996a42f63e47efc1ca19043e69558b5c523b978d611dfae49c8f",
    "rnet": "bbb937de72efc9ef83b186c49f5f558467a1d7e3453a8ece0d71a886633f6a86",
    "onet": "165bfbe42940416ccfb977545cf0e976d5bf321f67083ae2aaaa5c764280118d",
}


def _pnet(nn: Any) -> Any:
    class PNet(nn.Module):  # type: ignore[misc]
        """Proposals: a window of 12x12 pixels, moved by 2, over the image."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
            self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
            self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
            self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
            self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

        def forward(self, x: Any) -> Any:
            x = self.pool1(self.prelu1(self.conv1(x)))
            x = self.prelu2(self.conv2(x))
            x = self.prelu3(self.conv3(x))
            return self.conv4_2(x), self.conv4_1(x).softmax(dim=1)

    return PNet()


def _rnet(nn: Any) -> Any:
    class RNet(nn.Module):  # type: ignore[misc]
        """Refinement of one proposal, cut out and scaled to 24x24 pixels."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.prelu1 = nn.Conv2d(3, 28, 3), nn.PReLU(28)
            self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.conv2, self.prelu2 = nn.Conv2d(28, 48, 3), nn.PReLU(48)
            self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.conv3, self.prelu3 = nn.Conv2d(48, 64, 2), nn.PReLU(64)
            self.dense4, self.prelu4 = nn.Linear(576, 128), nn.PReLU(128)
            self.dense5_1, self.dense5_2 = nn.Linear(128, 2), nn.Linear(128, 4)

        def forward(self, x: Any) -> Any:
            x = self.pool1(self.prelu1(self.conv1(x)))
            x = self.pool2(self.prelu2(self.conv2(x)))
            x = self.prelu3(self.conv3(x))
            x = x.permute(0, 3, 2, 1).flatten(1)  # columns first: the weights come from Caffe's Matlab port
            x = self.prelu4(self.dense4(x))
            return self.dense5_2(x), self.dense5_1(x).softmax(dim=1)

    return RNet()


def _onet(nn: Any) -> Any:
    class ONet(nn.Module):  # type: ignore[misc]
        """The last word on one window, 48x48 pixels, with five landmarks."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.prelu1 = nn.Conv2d(3, 32, 3), nn.PReLU(32)
            self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.conv2, self.prelu2 = nn.Conv2d(32, 64, 3), nn.PReLU(64)
            self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.conv3, self.prelu3 = nn.Conv2d(64, 64, 3), nn.PReLU(64)
            self.pool3 = nn.MaxPool2d(2, 2, ceil_mode=True)
            self.conv4, self.prelu4 = nn.Conv2d(64, 128, 2), nn.PReLU(128)
            self.dense5, self.prelu5 = nn.Linear(1152, 256), nn.PReLU(256)
            self.dense6_1, self.dense6_2 = nn.Linear(256, 2), nn.Linear(256, 4)
            self.dense6_3 = nn.Linear(256, 10)

        def forward(self, x: Any) -> Any:
            x = self.pool1(self.prelu1(self.conv1(x)))
            x = self.pool2(self.prelu2(self.conv2(x)))
            x = self.pool3(self.prelu3(self.conv3(x)))
            x = self.prelu4(self.conv4(x))
            x = x.permute(0, 3, 2, 1).flatten(1)  # as in R-Net
            x = self.prelu5(self.dense5(x))
            return self.dense6_2(x), self.dense6_3(x), self.dense6_1(x).softmax(dim=1)

    return ONet()


def _mtcnn_model(module: Any, name: str, size: int, example: Window, windows: Sequence[Window]) -> ZooModel:
    """`module` with its weights; the inputs are windows of the photograph, scaled to `size`."""
    import torch

    weights = PackagedFile("facenet-pytorch", f"facenet_pytorch/data/{name}.pt", _MTCNN_WEIGHTS[name])
    module.load_state_dict(torch.load(packages.locate(weights), map_location="cpu", weights_only=True))
    image = load_photograph()
    samples = tuple((cut_window(image, window, size),) for window in windows)
    return ZooModel(module.eval(), (cut_window(image, example, size),), samples)


def mtcnn_pnet() -> ZooModel:
    """P-Net: float32 [1, 3, 64, 64] to boxes [1, 4, 27, 27] and the probabilities of no face and face
    [1, 2, 27, 27]. The example is the whole photograph; it is calibrated with parts of it at larger scales."""
    import torch

    windows = window_grid(384, 128) + window_grid(256, 128) + window_grid(128, 128)
    return _mtcnn_model(_pnet(torch.nn), "pnet", PNET_SIZE, WHOLE, windows)


def mtcnn_rnet() -> ZooModel:
    """R-Net: float32 [1, 3, 24, 24] to a box [1, 4] and the probabilities of no face and face [1, 2]."""
    import torch

    windows = windows_near_face() + window_grid(128, 128)
    return _mtcnn_model(_rnet(torch.nn), "rnet", _RNET_SIZE, FACE, windows)


def mtcnn_onet() -> ZooModel:
    """O-Net: float32 [1, 3, 48, 48] to a box [1, 4], landmarks [1, 10] (five x, then five y) and the
    probabilities of no face and face [1, 2]."""
    import torch

    windows = windows_near_face() + window_grid(128, 128)
    return _mtcnn_model(_onet(torch.nn), "onet", _ONET_SIZE, FACE, windows)
