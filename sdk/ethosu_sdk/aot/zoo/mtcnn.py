"""``zoo:mtcnn_pnet``, ``zoo:mtcnn_rnet``, ``zoo:mtcnn_onet``: the three networks of the face detector MTCNN, with
the pretrained weights that facenet-pytorch carries.

The networks are those of Zhang et al., "Joint Face Detection and Alignment using Multi-task Cascaded
Convolutional Networks" (2016), with facenet-pytorch's names of the layers, and its order of the outputs. Inputs are
RGB in -1…1; the boxes are corrections in units of the window, left, top, right, bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.aot.zoo import packages, photograph
from ethosu_sdk.aot.zoo.model import ZooModel
from ethosu_sdk.aot.zoo.packages import PackagedFile
from ethosu_sdk.aot.zoo.photograph import Window

PNET_SIZE = 64  # the whole photograph at this size has its face as large as P-Net's window of 12 pixels
_RNET_SIZE, _ONET_SIZE = 24, 48

_WEIGHTS = {
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


def _pretrained(module: Any, name: str, size: int, example: Window, windows: Sequence[Window]) -> ZooModel:
    """`module` with its weights; the inputs are windows of the photograph, scaled to `size`."""
    import torch

    weights = PackagedFile("facenet-pytorch", f"facenet_pytorch/data/{name}.pt", _WEIGHTS[name])
    module.load_state_dict(torch.load(packages.locate(weights), map_location="cpu", weights_only=True))
    image = photograph.load()
    samples = tuple((photograph.cut(image, window, size),) for window in windows)
    return ZooModel(module.eval(), (photograph.cut(image, example, size),), samples)


def pnet() -> ZooModel:
    """P-Net: float32 [1, 3, 64, 64] to boxes [1, 4, 27, 27] and the probabilities of no face and face
    [1, 2, 27, 27]. The example is the whole photograph; it is calibrated with parts of it at larger scales."""
    import torch

    windows = photograph.grid(384, 128) + photograph.grid(256, 128) + photograph.grid(128, 128)
    return _pretrained(_pnet(torch.nn), "pnet", PNET_SIZE, photograph.WHOLE, windows)


def rnet() -> ZooModel:
    """R-Net: float32 [1, 3, 24, 24] to a box [1, 4] and the probabilities of no face and face [1, 2]."""
    import torch

    windows = photograph.near_face() + photograph.grid(128, 128)
    return _pretrained(_rnet(torch.nn), "rnet", _RNET_SIZE, photograph.FACE, windows)


def onet() -> ZooModel:
    """O-Net: float32 [1, 3, 48, 48] to a box [1, 4], landmarks [1, 10] (five x, then five y) and the
    probabilities of no face and face [1, 2]."""
    import torch

    windows = photograph.near_face() + photograph.grid(128, 128)
    return _pretrained(_onet(torch.nn), "onet", _ONET_SIZE, photograph.FACE, windows)
