"""Networks as `.tflite`, built from public descriptions of their layers, with random weights.

A Network is written down once, in float. It is executed in LiteRT as a float model on random samples, and the ranges
that its activations take there give the scales and zero points of the quantised file, as post-training quantisation
does. So no activation is saturated or constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.tflite_files import Model, Tensor

Array = NDArray[Any]

#: Output quantisation that TFLite fixes, as (scale, zero point) by type of the activations.
FIXED: dict[str, dict[str, tuple[float, int]]] = {
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
}

#: Operators whose outputs are quantised as their first input is.
SAME = (
    "RESHAPE",
    "MAX_POOL_2D",
    "AVERAGE_POOL_2D",
    "PAD",
    "RESIZE_NEAREST_NEIGHBOR",
    "TRANSPOSE",
    "STRIDED_SLICE",
    "SPLIT",
)


@dataclass(frozen=True, eq=False)
class Node:
    """An activation and the layer that makes it; `inputs`: nodes, float weights with their axis, whole numbers."""

    kind: str
    shape: tuple[int, ...]
    inputs: Sequence[Node | tuple[Array, int] | Array] = ()
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    range: tuple[float, float] = (-1.0, 1.0)


class Network:
    """Layers in the order in which they are added; `dtype` is the type of the activations."""

    def __init__(self, dtype: str = "int8", seed: int = 0) -> None:
        self.dtype = dtype
        self.random = np.random.default_rng(seed)
        self.nodes: list[Node] = []
        self.outputs: list[tuple[Node, str]] = []

    def add(self, kind: str, inputs: Sequence[Any], shape: Sequence[int], **options: Any) -> Node:
        """Any layer."""
        self.nodes.append(Node(kind, tuple(shape), inputs, options))
        return self.nodes[-1]

    def input(self, name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> Node:
        self.nodes.append(Node("input", shape, name=name, range=(low, high)))
        return self.nodes[-1]

    def output(self, node: Node, name: str) -> None:
        self.outputs.append((node, name))

    def weights(self, shape: Sequence[int], terms: int, axis: int) -> tuple[Array, int]:
        """Weights for sums of `terms` products."""
        return self.random.normal(0, (2 / terms) ** 0.5, shape).astype(np.float32), axis

    def bias(self, count: int) -> tuple[Array, int]:
        return self.random.normal(0, 0.1, count).astype(np.float32), 0

    def conv(
        self,
        x: Node,
        filters: int,
        kernel: tuple[int, int],
        stride: int = 1,
        padding: str = "SAME",
        relu: str = "RELU",
    ) -> Node:
        height, width, depth = x.shape[1:]
        w = self.weights((filters, *kernel, depth), kernel[0] * kernel[1] * depth, 0)
        shape = (1, *_strided((height, width), kernel, stride, padding), filters)
        options = {
            "padding": padding,
            "stride_w": stride,
            "stride_h": stride,
            "fused_activation_function": relu,
        }
        return self.add("CONV_2D", [x, w, self.bias(filters)], shape, **options)

    def depthwise(
        self, x: Node, kernel: tuple[int, int] = (3, 3), stride: int = 1, relu: str = "RELU"
    ) -> Node:
        height, width, depth = x.shape[1:]
        w = self.weights((1, *kernel, depth), kernel[0] * kernel[1], 3)
        shape = (1, *_strided((height, width), kernel, stride, "SAME"), depth)
        options = {
            "padding": "SAME",
            "stride_w": stride,
            "stride_h": stride,
            "fused_activation_function": relu,
        }
        return self.add("DEPTHWISE_CONV_2D", [x, w, self.bias(depth)], shape, depth_multiplier=1, **options)

    def separable(self, x: Node, filters: int, stride: int = 1, relu: str = "RELU") -> Node:
        return self.conv(self.depthwise(x, stride=stride, relu=relu), filters, (1, 1), relu=relu)

    def dense(self, x: Node, units: int, relu: str = "NONE") -> Node:
        w = self.weights((units, x.shape[-1]), x.shape[-1], 0)
        shape = (x.shape[0], units)
        return self.add("FULLY_CONNECTED", [x, w, self.bias(units)], shape, fused_activation_function=relu)

    def pool(
        self, x: Node, kind: str, kernel: tuple[int, int], stride: int = 1, padding: str = "VALID"
    ) -> Node:
        shape = (1, *_strided(x.shape[1:3], kernel, stride, padding), x.shape[3])
        options = {
            "filter_height": kernel[0],
            "filter_width": kernel[1],
            "stride_w": stride,
            "stride_h": stride,
        }
        return self.add(
            f"{kind}_POOL_2D", [x], shape, padding=padding, fused_activation_function="NONE", **options
        )

    def reshape(self, x: Node, *shape: int) -> Node:
        return self.add("RESHAPE", [x, np.array(shape, np.int32)], shape, new_shape=list(shape))

    def classify(self, x: Node, classes: int) -> Node:
        """Average over height and width, a dense layer, and softmax."""
        x = self.pool(x, "AVERAGE", (x.shape[1], x.shape[2]))
        x = self.dense(self.reshape(x, 1, x.shape[-1]), classes)
        return self.softmax(x)

    def softmax(self, x: Node) -> Node:
        return self.add("SOFTMAX", [x], x.shape, beta=1.0)

    def logistic(self, x: Node) -> Node:
        return self.add("LOGISTIC", [x], x.shape)

    def tanh(self, x: Node) -> Node:
        return self.add("TANH", [x], x.shape)

    def binary(self, kind: str, a: Node, b: Node, relu: str = "NONE") -> Node:
        return self.add(kind, [a, b], np.broadcast_shapes(a.shape, b.shape), fused_activation_function=relu)

    def model(self) -> Model:
        """The quantised model."""
        return self.emit(self.ranges())[0]

    def ranges(self) -> dict[Node, tuple[float, float]]:
        """The range of each activation on random samples."""
        plain, tensors = self.emit(None)
        return _ranges(plain, {node: tensors[node].index for node in self.nodes}, self.random)

    def emit(self, ranges: dict[Node, tuple[float, float]] | None) -> tuple[Model, dict[Node, Tensor]]:
        """The model, quantised for these ranges, or the float one; the tensor of each node."""
        model = Model()
        made: dict[Node, Tensor] = {}
        for node in self.nodes:
            dtype = "float32" if ranges is None else self.dtype
            if ranges is None and node.kind in ("DEQUANTIZE", "QUANTIZE"):
                made[node] = next(made[one] for one in node.inputs if isinstance(one, Node))
                continue
            if node.kind == "DEQUANTIZE":
                dtype = "float32"
            scale, zero_point = (
                (None, 0) if dtype == "float32" else self.quantisation(node, ranges or {}, made)
            )
            if node.kind == "input":
                made[node] = model.input(node.name, node.shape, dtype, scale, zero_point)
                continue
            inputs: list[Tensor] = []
            for one in node.inputs:
                inputs.append(
                    made[one] if isinstance(one, Node) else self.constant(model, one, inputs, ranges is None)
                )
            if node.kind == "CONCATENATION" and ranges is not None:  # its inputs have the scale of its output
                for number, one in enumerate(inputs):
                    inputs[number] = model.tensor(one.shape, dtype, scale, zero_point)
                    model.operator("QUANTIZE", [one], inputs[number])
            made[node] = model.tensor(node.shape, dtype, scale, zero_point)
            model.operator(node.kind, inputs, made[node], **node.options)
        for node, name in self.outputs:
            model.output(made[node], name=name)
        return model, made

    def quantisation(
        self, node: Node, ranges: dict[Node, tuple[float, float]], made: dict[Node, Tensor]
    ) -> tuple[float, int]:
        if node.kind in FIXED:
            return FIXED[node.kind][self.dtype]
        if node.kind in SAME:
            first = next(made[one] for one in node.inputs if isinstance(one, Node))
            return first.scale[0], first.zero_point[0]
        low, high = ranges[node]
        if self.dtype == "int16":
            return max(-low, high) / 32767, 0
        scale = (high - low) / 255
        return scale, round(-low / scale) + (-128 if self.dtype == "int8" else 0)

    def constant(self, model: Model, value: Any, inputs: Sequence[Tensor], plain: bool) -> Tensor:
        """Weights or a bias, quantised as TFLite specifies; whole numbers as they are."""
        if not isinstance(value, tuple):
            return model.constant(value)
        array, axis = value
        if plain:
            return model.constant(array)
        if len(inputs) > 1:  # the bias: after input and weights
            scale = inputs[0].scale[0] * np.array(inputs[1].scale)
            return model.constant(
                np.round(array / scale).astype("int64" if self.dtype == "int16" else "int32"), scale
            )
        if self.dtype == "uint8":
            low, high = min(0.0, float(array.min())), max(0.0, float(array.max()))
            step = (high - low) / 255
            zero_point = round(-low / step)
            return model.constant(
                np.clip(np.round(array / step) + zero_point, 0, 255).astype(np.uint8), step, zero_point
            )
        others = tuple(n for n in range(array.ndim) if n != axis)
        largest = np.abs(array).max(others) if array.ndim == 4 else np.abs(array).max()
        shaped = np.reshape(largest / 127, [-1 if n == axis else 1 for n in range(array.ndim)])
        return model.constant(
            np.round(array / shaped).astype(np.int8), np.atleast_1d(largest / 127), axis=axis
        )


def _strided(size: Sequence[int], kernel: tuple[int, int], stride: int, padding: str) -> tuple[int, ...]:
    spare = (0, 0) if padding == "SAME" else (kernel[0] - 1, kernel[1] - 1)
    return tuple(-(-(n - less) // stride) for n, less in zip(size, spare, strict=True))


def _ranges(
    model: Model, nodes: dict[Node, int], random: np.random.Generator
) -> dict[Node, tuple[float, float]]:
    """The least and the greatest value of each node, zero among them, over eight samples in LiteRT."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model.to_bytes(),
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    found = dict.fromkeys(nodes, (0.0, 0.0))
    for _ in range(8):
        for node, index in nodes.items():
            if node.kind == "input":
                interpreter.set_tensor(index, random.uniform(*node.range, node.shape).astype(np.float32))
        interpreter.invoke()
        for node, index in nodes.items():
            values = interpreter.get_tensor(index)
            low, high = found[node]
            found[node] = min(low, float(values.min())), max(high, float(values.max()))
    return found


def micronet_kws() -> Network:
    """Keywords as MicroNet's: 49 x 10 spectral features, depthwise separable layers of uneven widths."""
    net = Network(seed=1)
    x = net.conv(net.input("features", 1, 49, 10, 1), 56, (10, 4), stride=2)
    for filters, stride in ((48, 1), (64, 2), (64, 1), (80, 1)):
        x = net.separable(x, filters, stride)
    net.output(net.classify(x, 12), "scores")
    return net


def ds_cnn() -> Network:
    """Keywords as DS-CNN's: four depthwise separable layers of 64 channels."""
    net = Network(seed=2)
    x = net.conv(net.input("features", 1, 49, 10, 1), 64, (10, 4), stride=2)
    for _ in range(4):
        x = net.separable(x, 64)
    net.output(net.classify(x, 12), "scores")
    return net


def resnet8() -> Network:
    """CIFAR-10 as ResNet-8's: three stacks with additions."""
    net = Network(seed=3)
    x = net.conv(net.input("image", 1, 32, 32, 3), 16, (3, 3))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, filters, (3, 3), stride), filters, (3, 3), relu="NONE")
        x = x if stride == 1 else net.conv(x, filters, (1, 1), stride, relu="NONE")
        x = net.binary("ADD", x, y, "RELU")
    net.output(net.classify(x, 10), "scores")
    return net


def _mobilenet(net: Network, x: Node) -> Node:
    """MobileNet V1 of width 0.25, up to the pooling."""
    x = net.conv(x, 8, (3, 3), stride=2, relu="RELU6")
    widths = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))
    for filters, stride in widths:
        x = net.separable(x, filters, stride, relu="RELU6")
    return x


def vww() -> Network:
    """Visual wake words: MobileNet 0.25 on 96 x 96 in colour."""
    net = Network(seed=4)
    net.output(net.classify(_mobilenet(net, net.input("image", 1, 96, 96, 3)), 2), "scores")
    return net


def person_detection(dtype: str = "int8") -> Network:
    """Person detection: MobileNet 0.25 on 96 x 96 in grey, classified by a convolution."""
    net = Network(dtype, seed=5)
    x = _mobilenet(net, net.input("image", 1, 96, 96, 1))
    x = net.conv(net.pool(x, "AVERAGE", (x.shape[1], x.shape[2])), 2, (1, 1), relu="NONE")
    net.output(net.softmax(net.reshape(x, 1, 2)), "scores")
    return net


def yolo() -> Network:
    """A detector as Yolo-Fastest: inverted residuals, an upsampled branch, and heads at two strides."""
    net = Network(seed=6)
    x = net.conv(net.input("image", 1, 96, 96, 3), 8, (3, 3), stride=2)
    branches = []
    for filters, stride, repeats in ((8, 2, 1), (16, 2, 2), (32, 2, 2)):
        for number in range(repeats):
            y = net.conv(x, 4 * filters, (1, 1))
            y = net.depthwise(y, stride=stride if number == 0 else 1)
            y = net.conv(y, filters, (1, 1), relu="NONE")
            x = y if number == 0 else net.binary("ADD", x, y)
        branches.append(x)
    fine, coarse = branches[-2:]
    net.output(net.conv(net.depthwise(coarse, (5, 5)), 18, (1, 1), relu="NONE"), "coarse")
    size = np.array(fine.shape[1:3], np.int32)
    up = net.add("RESIZE_NEAREST_NEIGHBOR", [coarse, size], (1, *fine.shape[1:3], coarse.shape[3]))
    depth = fine.shape[3] + coarse.shape[3]
    x = net.add(
        "CONCATENATION", [up, fine], (1, *fine.shape[1:3], depth), axis=3, fused_activation_function="NONE"
    )
    net.output(net.conv(net.depthwise(x, (5, 5)), 18, (1, 1), relu="NONE"), "fine")
    return net


def _gru(net: Network, x: Node, state: Node) -> Node:
    """A gated recurrent unit as converters write it out; its state is an input and an output of the model."""
    units = state.shape[-1]
    update = net.logistic(net.binary("ADD", net.dense(x, units), net.dense(state, units)))
    reset = net.logistic(net.binary("ADD", net.dense(x, units), net.dense(state, units)))
    new = net.tanh(net.binary("ADD", net.dense(x, units), net.dense(net.binary("MUL", reset, state), units)))
    return net.binary("ADD", new, net.binary("MUL", update, net.binary("SUB", state, new)))


def rnnoise() -> Network:
    """Noise suppression as RNNoise: three recurrent units whose states are inputs and outputs."""
    net = Network(seed=7)
    features = net.input("features", 1, 42)
    states = [
        net.input(name, 1, units)
        for name, units in (("vad_state", 24), ("noise_state", 48), ("denoise_state", 96))
    ]
    dense = net.tanh(net.dense(features, 24))
    vad = _gru(net, dense, states[0])

    def joined(*parts: Node) -> Node:
        depth = sum(one.shape[-1] for one in parts)
        return net.add("CONCATENATION", parts, (1, depth), axis=1, fused_activation_function="NONE")

    noise = _gru(net, joined(dense, vad, features), states[1])
    denoise = _gru(net, joined(vad, noise, features), states[2])
    net.output(net.logistic(net.dense(denoise, 22)), "gains")
    net.output(net.logistic(net.dense(vad, 1)), "vad")
    for node, name in ((vad, "vad_state_out"), (noise, "noise_state_out"), (denoise, "denoise_state_out")):
        net.output(node, name)
    return net


def autoencoder() -> Network:
    """Anomaly detection: dense layers 640, 128, 8, 128, 640."""
    net = Network(seed=8)
    x = net.input("features", 1, 640)
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, units, relu="RELU")
    net.output(net.dense(x, 640), "features_out")
    return net


def int16() -> Network:
    """Convolutions with activations of 16 bits."""
    net = Network("int16", seed=9)
    x = net.conv(net.input("signal", 1, 16, 16, 4), 16, (3, 3), stride=2)
    y = net.separable(x, 16)
    x = net.binary("ADD", x, y)
    x = net.pool(x, "MAX", (2, 2), 2)
    net.output(net.dense(net.reshape(x, 1, 256), 10), "scores")
    return net


def int16_gates() -> Network:
    """A gated recurrent unit with activations of 16 bits."""
    net = Network("int16", seed=12)
    state = net.input("state", 1, 24)
    net.output(_gru(net, net.dense(net.input("features", 1, 42), 24), state), "state_out")
    return net


def matmul() -> Network:
    """A product of an activation and an input, written as a FULLY_CONNECTED layer, between convolutions."""
    net = Network(seed=10)
    b = net.input("keys", 16, 16)
    x = net.conv(net.input("image", 1, 8, 8, 8), 16, (3, 3))
    a = net.reshape(x, 64, 16)
    y = net.add("FULLY_CONNECTED", [a, b], (64, 16), fused_activation_function="NONE")
    x = net.conv(net.reshape(y, 1, 8, 8, 16), 8, (3, 3), stride=2)
    net.output(net.classify(x, 5), "scores")
    return net


def cpu_operator() -> Network:
    """Convolutions around DEQUANTIZE and QUANTIZE, which Vela leaves to the processor."""
    net = Network(seed=11)
    x = net.conv(net.input("image", 1, 8, 8, 8), 16, (3, 3), relu="NONE")
    y = net.add("DEQUANTIZE", [x], x.shape)
    y = net.add("QUANTIZE", [y], x.shape)
    x = net.conv(net.binary("ADD", x, y), 8, (3, 3), stride=2)
    net.output(net.classify(x, 5), "scores")
    return net


def person_detection_uint8() -> Network:
    return person_detection("uint8")


NETWORKS: dict[str, Callable[[], Network]] = {
    made.__name__: made
    for made in (
        micronet_kws,
        ds_cnn,
        resnet8,
        vww,
        person_detection,
        person_detection_uint8,
        yolo,
        rnnoise,
        autoencoder,
        int16,
        int16_gates,
        matmul,
        cpu_operator,
    )
}
