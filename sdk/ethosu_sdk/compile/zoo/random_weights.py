"""Zoo models whose weights are random, from a fixed seed, or that have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ethosu_sdk.compile.zoo.packages import ZooModel


def calibrate_batch_norm(module: Any, batches: Iterable[Any]) -> None:
    """Set every BatchNorm's mean and variance to the average over `batches`; leaves `module` in eval mode.

    With the statistics of a fresh layer the activations of a deep random network shrink towards zero, and the
    observed quantisation scales sit on the quantiser's lower bound.
    """
    import torch

    kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)
    norms = [layer for layer in module.modules() if isinstance(layer, kinds)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average instead of a moving one
    module.train()
    with torch.no_grad():
        for batch in batches:
            module(batch)
    module.eval()


def add() -> ZooModel:
    """x + x on int32 [5], the smallest program that is one delegate and nothing else; no calibration samples."""
    import torch

    class Add(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + x

    return ZooModel(Add().eval(), (torch.tensor([1, 2, -3, 1000, -70000], dtype=torch.int32),), ())


def softmax() -> ZooModel:
    """A softmax of float32 [4, 10], which the Ethos-U partitioner leaves on the CPU; no calibration samples."""
    import torch

    generator = torch.Generator().manual_seed(2)
    return ZooModel(torch.nn.Softmax(dim=-1).eval(), (torch.randn(4, 10, generator=generator),), ())


_DS_CNN_CHANNELS = 64


def _separable(nn: Any) -> list[Any]:
    return [
        nn.Conv2d(_DS_CNN_CHANNELS, _DS_CNN_CHANNELS, 3, padding=1, groups=_DS_CNN_CHANNELS, bias=False),
        nn.BatchNorm2d(_DS_CNN_CHANNELS),
        nn.ReLU(),
        nn.Conv2d(_DS_CNN_CHANNELS, _DS_CNN_CHANNELS, 1, bias=False),
        nn.BatchNorm2d(_DS_CNN_CHANNELS),
        nn.ReLU(),
    ]


def ds_cnn() -> ZooModel:
    """The depthwise-separable keyword spotter of MLPerf Tiny: ten MFCCs over 49 frames, float32 [1, 1, 49, 10], to
    12 classes. The 24x5 average pool is beyond what Ethos-U55 pools at once, so ExecuTorch's partitioner leaves it
    to the CPU, between two delegates; Ethos-U85 takes it."""
    import torch

    nn = torch.nn
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = [
            nn.Conv2d(1, _DS_CNN_CHANNELS, (10, 4), stride=2, padding=(5, 1), bias=False),
            nn.BatchNorm2d(_DS_CNN_CHANNELS),
            nn.ReLU(),
        ]
        for _ in range(4):
            layers += _separable(nn)
        layers += [nn.AvgPool2d((24, 5)), nn.Flatten(), nn.Linear(_DS_CNN_CHANNELS, 12)]
        module = nn.Sequential(*layers)
        samples = torch.randn(17, 1, 1, 49, 10)
        calibrate_batch_norm(module, [samples[1:].flatten(0, 1)])
    return ZooModel(module, (samples[0],), tuple((sample,) for sample in samples[1:]))


# Three networks of MLPerf Tiny, as ExecuTorch's wheel defines them (``executorch.examples.models.mlperf_tiny``). The
# wheel's fourth, the keyword spotter, is :func:`ds_cnn`.


def _mlperf_tiny(
    network: type[Any],
    shape: tuple[int, ...],
    seed: int,
    statistics: int = 64,
    calibration: int = 32,
) -> ZooModel:
    """A `network` with random weights; samples of `shape` are uniform in -1…1, as the wheel's example inputs.
    The first of them is the example, `statistics` more set the batch normalisation, `calibration` of these
    calibrate."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = network()
        samples = torch.rand(statistics + 1, *shape) * 2 - 1
        calibrate_batch_norm(module, [samples[1:]])
    example, *rest = (sample[None] for sample in samples[: calibration + 1])
    return ZooModel(module, (example.clone(),), tuple((sample,) for sample in rest))


def resnet8() -> ZooModel:
    """Image classification on CIFAR-10: float32 [1, 3, 32, 32] to 10 classes."""
    from executorch.examples.models.mlperf_tiny import ResNet8

    return _mlperf_tiny(ResNet8, (3, 32, 32), 5)


def mobilenet_v1_025() -> ZooModel:
    """Visual wake words: float32 [1, 3, 96, 96] to 2 classes."""
    from executorch.examples.models.mlperf_tiny import MobileNetV1025

    return _mlperf_tiny(MobileNetV1025, (3, 96, 96), 6)


def deep_autoencoder() -> ZooModel:
    """Anomaly detection: float32 [1, 640] features to their reconstruction."""
    from executorch.examples.models.mlperf_tiny import DeepAutoEncoder

    # With fewer, the bottleneck of 8 values amplifies what the samples did not show.
    return _mlperf_tiny(DeepAutoEncoder, (640,), 7, statistics=256, calibration=64)


_MOBILENET_SIZE = 224

# expansion, channels, repeats, stride of the first repeat
MOBILENET_V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_STEM_CHANNELS, _HEAD_CHANNELS = 32, 1280


def _conv(
    nn: Any, channels_in: int, channels_out: int, *, kernel: int = 1, stride: int = 1, groups: int = 1
) -> list[Any]:
    padding = (kernel - 1) // 2
    return [
        nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(channels_out),
    ]


def _block(nn: Any, channels_in: int, channels_out: int, expansion: int, stride: int) -> Any:
    hidden = channels_in * expansion
    layers: list[Any] = [] if expansion == 1 else [*_conv(nn, channels_in, hidden), nn.ReLU6()]
    layers += [*_conv(nn, hidden, hidden, kernel=3, stride=stride, groups=hidden), nn.ReLU6()]
    return nn.Sequential(*layers, *_conv(nn, hidden, channels_out))


def _mobilenet(nn: Any) -> Any:
    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, body: Any) -> None:
            super().__init__()
            self.body = body

        def forward(self, x: Any) -> Any:
            return x + self.body(x)

    layers = [*_conv(nn, 3, _STEM_CHANNELS, kernel=3, stride=2), nn.ReLU6()]
    channels = _STEM_CHANNELS
    for expansion, channels_out, repeats, first_stride in MOBILENET_V2_STAGES:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            body = _block(nn, channels, channels_out, expansion, stride)
            layers.append(Residual(body) if stride == 1 and channels == channels_out else body)
            channels = channels_out
    layers += [*_conv(nn, channels, _HEAD_CHANNELS), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(_HEAD_CHANNELS, 1000))


def mobilenet_v2() -> ZooModel:
    """MobileNetV2, width 1.0: float32 [1, 3, 224, 224] to 1000 classes. The architecture is table 2 of Sandler et
    al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018). The example input is contiguous, so the
    program takes NCHW bytes and the NPU transposes them first."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(4)
        module = _mobilenet(torch.nn)
        shape = 3, _MOBILENET_SIZE, _MOBILENET_SIZE
        calibrate_batch_norm(module, [torch.randn(4, *shape) for _ in range(2)])
        samples = torch.randn(5, 1, *shape)
    return ZooModel(module, (samples[0],), tuple((sample,) for sample in samples[1:]))


# Networks for sound that take one frame of features an inference. What they need of earlier frames is in mutable
# buffers: the keyword spotter has temporal convolutions, whose buffers hold the frames that a window still needs;
# the voice activity detector is a gated recurrent unit (Cho et al., 2014), whose buffer is the hidden state.

STREAMING_FRAMES = 64  # of calibration, one after the other
_STREAMING_SEED = 12
_KWS_MELS, _KWS_CHANNELS, _KWS_WINDOW, _KWS_LAYERS, _KWS_CLASSES = 40, 48, 5, 4, 12
_VAD_FEATURES, _VAD_HIDDEN = 40, 32


def _streaming_model(module: Any, width: int) -> ZooModel:
    """`module` with a stream of frames whose loudness comes and goes."""
    import torch

    loudness = torch.linspace(0, 12, STREAMING_FRAMES).sin().abs() + 0.1
    frames = torch.randn(STREAMING_FRAMES, 1, width) * loudness[:, None, None]
    return ZooModel(module.eval(), (frames[0].clone(),), tuple((frame,) for frame in frames))


def streaming_kws() -> ZooModel:
    """One frame of 40 log-mel values, float32 [1, 40], to the scores of 12 keywords, [1, 12]."""
    import torch
    from torch import nn

    class Layer(nn.Module):  # type: ignore[misc]
        """A depthwise convolution over the last frames and a pointwise one, with a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.depthwise = nn.Conv1d(_KWS_CHANNELS, _KWS_CHANNELS, _KWS_WINDOW, groups=_KWS_CHANNELS)
            self.pointwise = nn.Conv1d(_KWS_CHANNELS, _KWS_CHANNELS, 1)
            self.register_buffer("frames", torch.zeros(1, _KWS_CHANNELS, _KWS_WINDOW - 1))

        def forward(self, frame: Any) -> Any:
            window = torch.cat([self.frames, frame], 2)
            self.frames.copy_(window[:, :, 1:])
            return frame + torch.relu(self.pointwise(torch.relu(self.depthwise(window))))

    class Spotter(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(_KWS_MELS, _KWS_CHANNELS, 1)
            self.layers = nn.Sequential(*(Layer() for _ in range(_KWS_LAYERS)))
            self.scores = nn.Linear(_KWS_CHANNELS, _KWS_CLASSES)

        def forward(self, frame: Any) -> Any:
            return self.scores(self.layers(torch.relu(self.first(frame[:, :, None])))[:, :, 0])

    with torch.random.fork_rng():
        torch.manual_seed(_STREAMING_SEED)
        return _streaming_model(Spotter(), _KWS_MELS)


def vad() -> ZooModel:
    """One frame of 40 log-mel values, float32 [1, 40], to the probability of a voice, [1, 1]."""
    import torch
    from torch import nn

    class Detector(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Linear(_VAD_FEATURES, _VAD_HIDDEN)
            self.gates = nn.Linear(2 * _VAD_HIDDEN, 2 * _VAD_HIDDEN)
            self.candidate = nn.Linear(2 * _VAD_HIDDEN, _VAD_HIDDEN)
            self.head = nn.Linear(_VAD_HIDDEN, 1)
            self.register_buffer("hidden", torch.zeros(1, _VAD_HIDDEN))

        def forward(self, frame: Any) -> Any:
            features = torch.relu(self.features(frame))
            update, reset = torch.sigmoid(self.gates(torch.cat([features, self.hidden], 1))).chunk(2, 1)
            candidate = torch.tanh(self.candidate(torch.cat([features, reset * self.hidden], 1)))
            hidden = self.hidden + update * (candidate - self.hidden)
            self.hidden.copy_(hidden)
            return torch.sigmoid(self.head(hidden))

    with torch.random.fork_rng():
        torch.manual_seed(_STREAMING_SEED)
        return _streaming_model(Detector(), _VAD_FEATURES)


# Decoders in the shape of Llama, as ExecuTorch's wheel defines them (``executorch.examples.models.llama``). One step
# takes a token and its position and gives the logits of the next token. Keys and values of earlier positions are in
# mutable buffers. The sizes of 15 and 42 million parameters are those of Karpathy's TinyStories models
# (``stories15M``, ``stories42M`` in llama2.c), which also share the embedding with the output layer.

LLAMA_CONTEXT = 64  # positions that the caches hold
_LLAMA_SEED = 11
# An embedding that is small beside what the layers add: otherwise the shared output layer would repeat each token.
_EMBEDDING_DEVIATION = 0.02


def _llama(*, dim: int, layers: int, heads: int, hidden: int, vocabulary: int) -> ZooModel:
    """Example: the first calibration sample. Calibration: a sequence of LLAMA_CONTEXT random tokens, step by step."""
    import torch
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        """One step: token int64 [1, 1], position int64 [1]; logits float32 [1, 1, vocabulary]."""

        def __init__(self) -> None:
            super().__init__()
            self.transformer = construct_transformer(
                ModelArgs(
                    dim=dim,
                    n_layers=layers,
                    n_heads=heads,
                    hidden_dim=hidden,
                    vocab_size=vocabulary,
                    max_seq_len=LLAMA_CONTEXT,
                    max_context_len=LLAMA_CONTEXT,
                    use_kv_cache=True,
                    generate_full_logits=True,
                )
            )
            self.transformer.output.weight = self.transformer.tok_embeddings.weight

        def forward(self, token: Any, input_pos: Any) -> Any:
            return self.transformer(token, {"input_pos": input_pos})

    with torch.random.fork_rng():
        torch.manual_seed(_LLAMA_SEED)
        module = Decoder()
        for name, values in module.named_parameters():
            if values.dim() == 2:
                embedding = name == "transformer.tok_embeddings.weight"
                deviation = _EMBEDDING_DEVIATION if embedding else values.shape[1] ** -0.5
                torch.nn.init.normal_(values, std=deviation)
        tokens = torch.randint(0, vocabulary, (LLAMA_CONTEXT,)).tolist()
    steps = tuple((torch.tensor([[token]]), torch.tensor([place])) for place, token in enumerate(tokens))
    return ZooModel(module.eval(), tuple(value.clone() for value in steps[0]), steps)


def llama_1m() -> ZooModel:
    """0.9 million parameters."""
    return _llama(dim=128, layers=4, heads=4, hidden=352, vocabulary=1024)


def llama_15m() -> ZooModel:
    """15.2 million parameters, as stories15M."""
    return _llama(dim=288, layers=6, heads=6, hidden=768, vocabulary=32000)


def llama_42m() -> ZooModel:
    """41.7 million parameters, as stories42M."""
    return _llama(dim=512, layers=8, heads=8, hidden=1376, vocabulary=32000)
