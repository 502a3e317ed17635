"""The photograph that the face detectors of the zoo are calibrated with, and windows of it.

It is NASA's portrait of the astronaut Eileen Collins, in the public domain, 512x512 pixels, as scikit-image's
wheel carries it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.zoo import packages
from ethosu_sdk.aot.zoo.packages import PackagedFile

SIDE = 512
_FILE = PackagedFile(
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


WHOLE = Window(0, 0, SIDE)
FACE = Window(168, 66, 112)  # from the hairline to the chin


def grid(side: int, step: int) -> tuple[Window, ...]:
    """Windows of `side` pixels, `step` pixels apart, row by row."""
    offsets = range(0, SIDE - side + 1, step)
    return tuple(Window(left, top, side) for top in offsets for left in offsets)


def near_face() -> tuple[Window, ...]:
    """Windows that hold the face as the first stage of MTCNN finds it: roughly, and in several sizes."""

    def around(side: int) -> Iterator[Window]:
        margin = (side - FACE.side) // 2
        for right, down in ((0, 0), (-8, 0), (8, 0), (0, -8), (0, 8)):
            yield Window(FACE.left - margin + right, FACE.top - margin + down, side)

    return tuple(window for side in (88, 104, 120, 136) for window in around(side))


def load() -> Any:
    """The photograph as a float32 tensor [1, 3, 512, 512], RGB, in the range of MTCNN's inputs, -1…1."""
    import numpy as np
    import torch
    from PIL import Image

    with Image.open(packages.locate(_FILE)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    return ((torch.from_numpy(pixels) - _GREY) / _SPAN).permute(2, 0, 1)[None].contiguous()


def cut(photograph: Any, window: Window, size: int) -> Any:
    """The `window` of the `photograph`, scaled to [1, 3, `size`, `size`] by averaging areas, as
    facenet-pytorch does."""
    import torch

    bottom, right = window.top + window.side, window.left + window.side
    part = photograph[:, :, window.top : bottom, window.left : right]
    return torch.nn.functional.interpolate(part, size=(size, size), mode="area")
