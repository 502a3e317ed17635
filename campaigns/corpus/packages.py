"""The packages of the corpus: their folder, and what torchvision's import needs without its compiled operators."""

import functools
from pathlib import Path

import torch

from tests.places import ROOT

FOLDER = ROOT / "build" / "corpus-packages"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# Compiled operators that torchvision describes on import. No architecture of the corpus calls one.
_TORCHVISION_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@functools.cache
def prepare() -> torch.library.Library:
    """Let torchvision be imported. scripts/model-corpus takes its compiled operators away, since the usual wheel's
    are for a torch with CUDA and do not load beside one for the CPU."""
    library = torch.library.Library("torchvision", "DEF")
    for schema in _TORCHVISION_OPERATORS:
        library.define(schema)
    return library
