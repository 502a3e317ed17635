"""The networks of MLPerf Tiny by its reference models. Weights are random: a CPU's time depends on shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from campaigns.fidelity import networks
from campaigns.fidelity.tflite import Graph


def ad_autoencoder() -> bytes:
    """Anomaly detection: dense layers 640-128-128-128-128-8-128-128-128-128-640."""
    graph = Graph(spread=45.0)
    last = graph.input(1, 640)
    for depth in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        last = graph.fully_connected(last, depth, relu="RELU")
    return graph.build(graph.fully_connected(last, 640))


NETWORKS: Mapping[str, Callable[[], bytes]] = {
    "mlperf_tiny_ad_autoencoder": ad_autoencoder,
    "mlperf_tiny_kws_ds_cnn": functools.partial(networks.ds_cnn, 64),
    "mlperf_tiny_ic_resnet_8": networks.resnet_8,
    "mlperf_tiny_vww_mobilenet_v1_025": functools.partial(networks.person_detection, 3),
}
