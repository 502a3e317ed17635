"""Networks of published runs, by their public descriptions, with random weights of like compressibility."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from ethosu_sdk.aot.zoo.mobilenet_v2 import STAGES
from tests.fidelity.tflite import Graph


def mobilenet_v2() -> bytes:
    """MobileNetV2 1.0 for images of 224x224: 300.8 million multiply-accumulates."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 224, 224, 3), 32, (3, 3), (2, 2))
    for expansion, depth, repeats, first_stride in STAGES:
        for index in range(repeats):
            before, stride = last, first_stride if index == 0 else 1
            if expansion > 1:
                last = graph.conv(last, expansion * graph.shape(last)[3])
            last = graph.depthwise(last, stride=(stride, stride))
            last = graph.conv(last, depth, relu="NONE")
            if stride == 1 and graph.shape(before) == graph.shape(last):
                last = graph.add(before, last)
    last = graph.average_pool(graph.conv(last, 1280))
    last = graph.conv(last, 1001, relu="NONE")
    return graph.build(graph.softmax(graph.flatten(last)))


OPERATORS = ("conv1x1", "conv3x3", "dw3x3")


def operator(name: str, height: int, width: int) -> bytes:
    """A single layer from 128 to 128 channels, stride 1, SAME: conv1x1, conv3x3 or dw3x3."""
    graph = Graph()
    source = graph.input(1, height, width, 128)
    if name.startswith("conv"):
        size = int(name[-1])
        return graph.build(graph.conv(source, 128, (size, size), relu="NONE"))
    return graph.build(graph.depthwise(source, relu="NONE"))


def micronet_kws_medium() -> bytes:
    """MicroNet for keyword spotting, medium, on 49x10 coefficients (Banbury et al., 2021)."""
    graph = Graph(spread=52.0)
    last = graph.conv(graph.input(1, 49, 10, 1), 140, (10, 4))
    for depth, stride in ((140, 2), (140, 1), (140, 1), (112, 1), (196, 1)):
        last = graph.conv(graph.depthwise(last, stride=(stride, stride)), depth)
    return graph.build(graph.flatten(graph.conv(graph.average_pool(last), 12, relu="NONE")))


def ds_cnn(depth: int) -> bytes:
    """DS-CNN for keyword spotting on 49x10 coefficients, with four separable blocks (Zhang et al., 2017)."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 49, 10, 1), depth, (10, 4), (2, 2))
    for _ in range(4):
        last = graph.conv(graph.depthwise(last), depth)
    last = graph.fully_connected(graph.flatten(graph.average_pool(last)), 12)
    return graph.build(graph.softmax(last))


def person_detection(channels: int = 1) -> bytes:
    """MobileNetV1 0.25 on images of 96x96 with two classes; MLPerf Tiny's visual wake words have three channels."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 96, 96, channels), 8, (3, 3), (2, 2))
    layers = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1))
    for depth, stride in layers:
        last = graph.conv(graph.depthwise(last, stride=(stride, stride)), depth)
    last = graph.conv(graph.average_pool(last), 2, relu="NONE")
    return graph.build(graph.softmax(graph.flatten(last)))


def resnet_8() -> bytes:
    """ResNet-8 on images of 32x32 with ten classes (MLPerf Tiny, image classification)."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 32, 32, 3), 16, (3, 3), relu="RELU")
    for depth, stride in ((16, 1), (32, 2), (64, 2)):
        inner = graph.conv(last, depth, (3, 3), (stride, stride), relu="RELU")
        inner = graph.conv(inner, depth, (3, 3), relu="NONE")
        side = last if stride == 1 else graph.conv(last, depth, (1, 1), (stride, stride), relu="NONE")
        last = graph.add(side, inner, relu="RELU")
    return graph.build(graph.softmax(graph.fully_connected(graph.flatten(graph.average_pool(last)), 10)))


NETWORKS: Mapping[str, Callable[[], bytes]] = {
    "mv2_224": mobilenet_v2,
    "kws_micronet_m": micronet_kws_medium,
    "ds_cnn_s": functools.partial(ds_cnn, 64),
    "ds_cnn_m": functools.partial(ds_cnn, 172),
    "ds_cnn_l": functools.partial(ds_cnn, 276),
    "person_detection": person_detection,
    "resnet_8": resnet_8,
}
