"""Networks of published runs, by their public descriptions, with random weights of like compressibility."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fidelity.tflite import Graph

_MOBILENET_V2 = (  # expansion, channels, repeats, first stride (Sandler et al., 2018, table 2)
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2() -> bytes:
    """MobileNetV2 1.0 for images of 224x224: 300.8 million multiply-accumulates."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 224, 224, 3), 32, (3, 3), (2, 2))
    for expansion, depth, repeats, first_stride in _MOBILENET_V2:
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


def operator(name: str, height: int, width: int) -> bytes:
    """A single layer from 128 to 128 channels, stride 1, SAME: conv1x1, conv3x3 or dw3x3."""
    graph = Graph()
    source = graph.input(1, height, width, 128)
    if name.startswith("conv"):
        size = int(name[-1])
        return graph.build(graph.conv(source, 128, (size, size), relu="NONE"))
    return graph.build(graph.depthwise(source, relu="NONE"))


NETWORKS: Mapping[str, Callable[[], bytes]] = {"mv2_224": mobilenet_v2}
