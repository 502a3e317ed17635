"""The SDK's own models: small, reproducible, and between them every way an operator can go.

The table is light; a model's module imports torch when :func:`load` builds it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.zoo import digits as digits


@dataclass(frozen=True)
class ZooEntry:
    """One zoo model: its name, a sentence, the module of this package that builds it, and the quantisation
    it is meant for."""

    name: str
    summary: str
    module: str
    quantize: str


@dataclass(frozen=True)
class ZooModel:
    """A built zoo model: an ``nn.Module`` in eval mode, its example inputs (a tuple of tensors) and the
    calibration samples (each such a tuple)."""

    module: Any
    example_inputs: tuple[Any, ...]
    calibration: tuple[tuple[Any, ...], ...]


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
    """Build the zoo model `name` (imports torch). The same name gives the same weights each time."""
    module = importlib.import_module(f"{__name__}.{entry(name).module}")
    build: Callable[[], tuple[Any, tuple[Any, ...], tuple[tuple[Any, ...], ...]]] = module.build
    return ZooModel(*build())
