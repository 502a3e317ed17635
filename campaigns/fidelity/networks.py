"""Networks of published runs, by their public descriptions, with random weights of like compressibility."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from campaigns.fidelity.tflite import TRAINED, Graph
from ethosu_sdk.compile.zoo.random_weights import MOBILENET_V2_STAGES


def mobilenet_v2() -> bytes:
    """MobileNetV2 1.0 for images of 224x224: 300.8 million multiply-accumulates."""
    graph = Graph(spread=45.0)
    last = graph.conv(graph.input(1, 224, 224, 3), 32, (3, 3), (2, 2))
    for expansion, depth, repeats, first_stride in MOBILENET_V2_STAGES:
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
    graph = Graph(exponent=TRAINED)
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


def micronet_ad_medium() -> bytes:
    """MicroNet for anomaly detection, medium, on spectrograms of 32x32 (Banbury et al., 2021, table 5).

    Its weights hardly compress: published traffic is that of uniform ones.
    """
    graph = Graph()
    last = graph.conv(graph.input(1, 32, 32, 1), 192, (3, 3))
    for stride in (2, 1, 1, 2, 2):
        last = graph.conv(graph.depthwise(last, stride=(stride, stride)), 276)
    return graph.build(graph.flatten(graph.conv(graph.average_pool(last), 8, relu="NONE")))


# Inverted bottlenecks of MicroNet VWW-4: expansion, depth, stride and whether the result is added to the input, with
# channels of zeros behind whichever is shallower (harvard-edge/Wake_Vision, micronets_vww4_128_128_INT8.py).
_VWW_4 = (
    (4, 4, 1, False), (8, 12, 2, False), (14, 16, 1, True), (28, 32, 2, False), (96, 28, 1, True),
    (96, 28, 1, True), (152, 44, 2, False), (268, 40, 1, True), (268, 52, 1, True), (268, 44, 1, True),
    (192, 68, 1, False), (172, 68, 1, True), (172, 48, 1, True), (288, 16, 2, False), (96, 16, 1, True),
    (96, 32, 1, True), (96, 32, 1, False),
)  # fmt: skip


def micronet_vww_4() -> bytes:
    """MicroNet VWW-4 on grey images of 128x128 (Banbury et al., 2021)."""
    graph = Graph(exponent=TRAINED)
    last = graph.conv(graph.input(1, 128, 128, 1), 8, (3, 3), (2, 2))
    for expansion, depth, stride, is_added in _VWW_4:
        before = last
        last = graph.depthwise(graph.conv(last, expansion), stride=(stride, stride))
        last = graph.conv(last, depth, relu="NONE")
        if is_added:
            deepest = max(graph.shape(before)[3], depth)
            last = graph.add(_deepened(graph, last, deepest), _deepened(graph, before, deepest))
    last = graph.average_pool(graph.conv(last, 128))
    return graph.build(graph.flatten(graph.conv(last, 2, relu="NONE")))


def _deepened(graph: Graph, source: int, depth: int) -> int:
    missing = depth - graph.shape(source)[3]
    return graph.pad(source, (0, 0), (0, 0), (0, 0), (0, missing)) if missing else source


# Inverted bottlenecks of YOLO-Fastest for faces: expansion, depth and stride
# (yolo-fastest_192_face_v4.tflite in Arm-Examples/mlek-cmsis-pack-examples).
_YOLO_FASTEST = (
    (8, 4, 1), (8, 4, 1), (24, 8, 2), *((32, 8, 1),) * 2, (32, 8, 2), *((48, 8, 1),) * 2, (48, 16, 1),
    *((96, 16, 1),) * 4, (96, 24, 2), *((136, 24, 1),) * 4, (136, 48, 2), *((224, 48, 1),) * 5,
)  # fmt: skip


def yolo_fastest() -> bytes:
    """YOLO-Fastest on grey images of 192x192 with one class, as Arm's evaluation kit runs it."""
    graph = Graph(exponent=TRAINED)
    last = graph.conv(_before_stride(graph, graph.input(1, 192, 192, 1)), 8, (3, 3), (2, 2), padding="VALID")
    shallow = last
    for expansion, depth, stride in _YOLO_FASTEST:
        before, last = last, graph.conv(last, expansion)
        if stride == 1:
            last = graph.conv(graph.depthwise(last), depth, relu="NONE")
        else:
            last = graph.depthwise(_before_stride(graph, last), stride=(2, 2), padding="VALID")
            last = graph.conv(last, depth, relu="NONE")
        if graph.shape(before) == graph.shape(last):
            last = graph.add(before, last)
        if graph.shape(last)[1] == 12:
            shallow = last
    pools = [graph.max_pool(last, (size, size), (1, 1), padding="SAME") for size in (9, 5, 3)]
    deep = graph.conv(graph.concatenate(*pools, last), 96)
    both = graph.concatenate(graph.enlarge(deep, 2), shallow)
    return graph.build(_yolo_head(graph, deep), _yolo_head(graph, both))


def _before_stride(graph: Graph, source: int) -> int:
    return graph.pad(source, (0, 0), (1, 0), (1, 0), (0, 0))


def _yolo_head(graph: Graph, source: int) -> int:
    depth = graph.shape(source)[3]
    for _ in range(2):
        source = graph.conv(graph.depthwise(source, (5, 5)), depth, relu="NONE")
    return graph.conv(source, 18, relu="NONE")


def wav2letter_pruned() -> bytes:
    """Wav2Letter on 296 frames of 39 coefficients, half of its weights 0 (ARM-software/ML-zoo, wav2letter.py)."""
    graph = Graph(exponent=TRAINED, pruned=0.5)
    last = graph.reshape(graph.input(1, 296, 39), (1, 1, 296, 39))
    layers = [(250, 48, 2), *[(250, 7, 1)] * 7, (2000, 32, 1), (2000, 1, 1)]
    for depth, width, stride in layers:
        last = graph.leaky_relu(graph.conv(last, depth, (1, width), (1, stride), relu="NONE"), 0.2)
    return graph.build(graph.softmax(graph.conv(last, 29, relu="NONE")))


def rnnoise() -> bytes:
    """RNNoise, one step with its three states as inputs and outputs (ARM-software/ML-zoo, RNNoise, model.py).

    Training clips its weights, which compress less than others for that.
    """
    graph = Graph(exponent=2.5)
    source = graph.input(1, 42)
    states = [graph.input(1, size) for size in (24, 48, 96)]
    first = graph.tanh(graph.fully_connected(source, 24))
    voice = _gru(graph, first, states[0])
    is_voice = graph.logistic(graph.fully_connected(voice, 1))
    both = graph.concatenate(*(graph.quantize(part) for part in (first, voice, source)))
    noise = _gru(graph, both, states[1])
    all_three = graph.concatenate(*(graph.quantize(part) for part in (voice, noise, source)))
    clean = _gru(graph, all_three, states[2])
    gains = graph.logistic(graph.fully_connected(clean, 22))
    kept = [graph.quantize(state) for state in (voice, noise, clean)]
    return graph.build(kept[2], gains, kept[1], kept[0], is_voice)


def _gru(graph: Graph, source: int, state: int) -> int:
    """A step of a gated recurrent unit whose reset gate acts behind the matrix, as Keras unrolls it."""
    size = graph.shape(state)[1]
    inner = graph.split(graph.fully_connected(state, 3 * size), 3)
    outer = graph.split(graph.fully_connected(source, 3 * size), 3)
    update, reset = (graph.logistic(graph.add(outer[gate], inner[gate])) for gate in (0, 1))
    candidate = graph.tanh(graph.add(outer[2], graph.multiply(reset, inner[2])))
    fresh = graph.multiply(graph.subtract(graph.full((1, size), 127), update), candidate)
    return graph.add(graph.multiply(update, state), fresh)


def dnn_small() -> bytes:
    """DNN for keyword spotting, small, on 25x10 coefficients (Zhang et al., 2017)."""
    graph = Graph(exponent=TRAINED)
    last = graph.input(1, 250)
    for _ in range(3):
        last = graph.fully_connected(last, 144, relu="RELU")
    return graph.build(graph.softmax(graph.fully_connected(last, 12)))


NETWORKS: Mapping[str, Callable[[], bytes]] = {
    "mv2_224": mobilenet_v2,
    "kws_micronet_m": micronet_kws_medium,
    "ad_medium": micronet_ad_medium,
    "vww4_128": micronet_vww_4,
    "yolo-fastest_192": yolo_fastest,
    "wav2letter_pruned": wav2letter_pruned,
    "rnnoise": rnnoise,
    "dnn_s": dnn_small,
    "ds_cnn_s": functools.partial(ds_cnn, 64),
    "ds_cnn_m": functools.partial(ds_cnn, 172),
    "ds_cnn_l": functools.partial(ds_cnn, 276),
    "person_detection": person_detection,
    "resnet_8": resnet_8,
}
