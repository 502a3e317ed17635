"""``zoo:resnet8``, ``zoo:mobilenet_v1_025``, ``zoo:deep_autoencoder``: three networks of MLPerf Tiny, as ExecuTorch's
wheel defines them (``executorch.examples.models.mlperf_tiny``), with random weights from fixed seeds.

The wheel's fourth, the keyword spotter, is ``zoo:ds_cnn`` (:mod:`ethosu_sdk.aot.zoo.ds_cnn`).
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel

_CALIBRATION_SAMPLES = 32
_STATISTICS_SAMPLES = 64
# With fewer, the autoencoder's bottleneck of 8 values amplifies what the samples did not show.
_VECTOR_CALIBRATION_SAMPLES = 64
_VECTOR_STATISTICS_SAMPLES = 256


def _random(
    network: type[Any],
    shape: tuple[int, ...],
    seed: int,
    statistics: int = _STATISTICS_SAMPLES,
    calibration: int = _CALIBRATION_SAMPLES,
) -> ZooModel:
    """A `network` with random weights; samples of `shape` are uniform in -1…1, as the wheel's example inputs.
    The first of them is the example, `statistics` more set the batch normalisation, `calibration` of these
    calibrate."""
    import torch

    from ethosu_sdk.aot.zoo import batch_norm

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = network()
        samples = torch.rand(statistics + 1, *shape) * 2 - 1
        batch_norm.calibrate(module, [samples[1:]])
    example, *rest = (sample[None] for sample in samples[: calibration + 1])
    return ZooModel(module, (example.clone(),), tuple((sample,) for sample in rest))


def resnet8() -> ZooModel:
    """Image classification on CIFAR-10: float32 [1, 3, 32, 32] to 10 classes."""
    from executorch.examples.models.mlperf_tiny import ResNet8

    return _random(ResNet8, (3, 32, 32), 5)


def mobilenet_v1_025() -> ZooModel:
    """Visual wake words: float32 [1, 3, 96, 96] to 2 classes."""
    from executorch.examples.models.mlperf_tiny import MobileNetV1025

    return _random(MobileNetV1025, (3, 96, 96), 6)


def deep_autoencoder() -> ZooModel:
    """Anomaly detection: float32 [1, 640] features to their reconstruction."""
    from executorch.examples.models.mlperf_tiny import DeepAutoEncoder

    return _random(DeepAutoEncoder, (640,), 7, _VECTOR_STATISTICS_SAMPLES, _VECTOR_CALIBRATION_SAMPLES)
