"""``zoo:streaming_kws`` and ``zoo:vad``: networks for sound that take one frame of features an inference. What they
need of earlier frames is in mutable buffers. Random weights from a fixed seed.

The keyword spotter has temporal convolutions, whose buffers hold the frames that a window still needs. The voice
activity detector is a gated recurrent unit (Cho et al., 2014), whose buffer is the hidden state.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel

FRAMES = 64  # of calibration, one after the other
_SEED = 12
_MELS, _CHANNELS, _WINDOW, _LAYERS, _CLASSES = 40, 48, 5, 4, 12
_VAD_FEATURES, _HIDDEN = 40, 32


def _built(module: Any, width: int) -> ZooModel:
    """`module` with a stream of frames whose loudness comes and goes."""
    import torch

    loudness = torch.linspace(0, 12, FRAMES).sin().abs() + 0.1
    frames = torch.randn(FRAMES, 1, width) * loudness[:, None, None]
    return ZooModel(module.eval(), (frames[0].clone(),), tuple((frame,) for frame in frames))


def keyword_spotter() -> ZooModel:
    """One frame of 40 log-mel values, float32 [1, 40], to the scores of 12 keywords, [1, 12]."""
    import torch
    from torch import nn

    class Layer(nn.Module):  # type: ignore[misc]
        """A depthwise convolution over the last frames and a pointwise one, with a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.depthwise = nn.Conv1d(_CHANNELS, _CHANNELS, _WINDOW, groups=_CHANNELS)
            self.pointwise = nn.Conv1d(_CHANNELS, _CHANNELS, 1)
            self.register_buffer("frames", torch.zeros(1, _CHANNELS, _WINDOW - 1))

        def forward(self, frame: Any) -> Any:
            window = torch.cat([self.frames, frame], 2)
            self.frames.copy_(window[:, :, 1:])
            return frame + torch.relu(self.pointwise(torch.relu(self.depthwise(window))))

    class Spotter(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(_MELS, _CHANNELS, 1)
            self.layers = nn.Sequential(*(Layer() for _ in range(_LAYERS)))
            self.scores = nn.Linear(_CHANNELS, _CLASSES)

        def forward(self, frame: Any) -> Any:
            return self.scores(self.layers(torch.relu(self.first(frame[:, :, None])))[:, :, 0])

    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        return _built(Spotter(), _MELS)


def voice_detector() -> ZooModel:
    """One frame of 40 log-mel values, float32 [1, 40], to the probability of a voice, [1, 1]."""
    import torch
    from torch import nn

    class Detector(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Linear(_VAD_FEATURES, _HIDDEN)
            self.gates = nn.Linear(2 * _HIDDEN, 2 * _HIDDEN)
            self.candidate = nn.Linear(2 * _HIDDEN, _HIDDEN)
            self.head = nn.Linear(_HIDDEN, 1)
            self.register_buffer("hidden", torch.zeros(1, _HIDDEN))

        def forward(self, frame: Any) -> Any:
            features = torch.relu(self.features(frame))
            update, reset = torch.sigmoid(self.gates(torch.cat([features, self.hidden], 1))).chunk(2, 1)
            candidate = torch.tanh(self.candidate(torch.cat([features, reset * self.hidden], 1)))
            hidden = self.hidden + update * (candidate - self.hidden)
            self.hidden.copy_(hidden)
            return torch.sigmoid(self.head(hidden))

    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        return _built(Detector(), _VAD_FEATURES)
