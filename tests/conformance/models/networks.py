"""Blocks of networks: several operators that hand feature maps to each other."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.models.case import BRANCHES, U85, Case, Integers, Shape, function, graph, layers

_IMAGE: tuple[Shape, ...] = ((1, 8, 12, 10),)


def conv_bn(nn: Any, ifm: int, ofm: int, kernel: int, **options: Any) -> Any:
    """Convolution, batch normalisation, ReLU6."""
    return nn.Sequential(nn.Conv2d(ifm, ofm, kernel, bias=False, **options), nn.BatchNorm2d(ofm), nn.ReLU6())


def masked_attention(torch: Any) -> Any:
    """Self-attention of one head that does not look ahead."""

    def forward(torch: Any, self: Any, x: Any) -> Any:
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 4 + self.mask
        return torch.softmax(scores, -1) @ self.value(x)

    network = graph(lambda nn: {name: nn.Linear(16, 16) for name in ("query", "key", "value")}, forward)(
        torch
    )
    network.register_buffer("mask", torch.triu(torch.full((12, 12), -10.0), 1))
    return network


INVERTED_RESIDUAL = graph(
    lambda nn: {
        "path": nn.Sequential(
            conv_bn(nn, 16, 48, 1),
            conv_bn(nn, 48, 48, 3, padding=1, groups=48),
            nn.Conv2d(48, 16, 1, bias=False),
            nn.BatchNorm2d(16),
        )
    },
    lambda torch, self, x: x + self.path(x),
)
RESNET_BLOCK = graph(
    lambda nn: {
        "first": conv_bn(nn, 12, 24, 3, stride=2, padding=1),
        "second": nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24)),
        "short": nn.Conv2d(12, 24, 1, stride=2),
    },
    lambda torch, self, x: torch.relu(self.second(self.first(x)) + self.short(x)),
)
ATTENTION = graph(
    lambda nn: {name: nn.Linear(16, 16) for name in ("query", "key", "value")},
    lambda torch, self, x: torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) / 4, -1) @ self.value(x),
)
SQUEEZE_EXCITE = graph(
    lambda nn: {
        "gate": nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 6, 1), nn.ReLU(), nn.Conv2d(6, 24, 1), nn.Sigmoid()
        )
    },
    lambda torch, self, x: x * self.gate(x),
)
FIRE = graph(
    lambda nn: {
        "squeeze": nn.Conv2d(16, 6, 1),
        "one": nn.Conv2d(6, 10, 1),
        "three": nn.Conv2d(6, 10, 3, padding=1),
    },
    lambda torch, self, x: torch.cat(
        [torch.relu(part(torch.relu(self.squeeze(x)))) for part in (self.one, self.three)], 1
    ),
)
UNET = graph(
    lambda nn: {
        "down": conv_bn(nn, 8, 12, 3, padding=1),
        "low": conv_bn(nn, 12, 12, 3, padding=1),
        "up": nn.ConvTranspose2d(12, 8, 2, stride=2),
        "last": nn.Conv2d(16, 4, 3, padding=1),
        "pool": nn.MaxPool2d(2),
    },
    lambda torch, self, x: self.last(torch.cat([x, self.up(self.low(self.pool(self.down(x))))], 1)),
)


def encoder_layer(torch: Any, self: Any, x: Any) -> Any:
    """Two heads of attention and a feed-forward part, each with a residual sum."""
    query, key, value = (
        part.reshape(1, 10, 2, 8).transpose(1, 2) for part in self.heads(self.norm(x)).chunk(3, -1)
    )
    mixed = torch.softmax(query @ key.transpose(2, 3) / 3, -1) @ value
    x = x + self.project(mixed.transpose(1, 2).reshape(1, 10, 16))
    return x + self.feed(self.second_norm(x))


ENCODER_LAYER = graph(
    lambda nn: {
        "norm": nn.LayerNorm(16),
        "second_norm": nn.LayerNorm(16),
        "heads": nn.Linear(16, 48),
        "project": nn.Linear(16, 16),
        "feed": nn.Sequential(nn.Linear(16, 40), nn.GELU(), nn.Linear(40, 16)),
    },
    encoder_layer,
)


def lstm_gates(torch: Any, self: Any, x: Any, hidden: Any, cell: Any) -> tuple[Any, ...]:
    """One step of an LSTM."""
    gates = self.from_input(x) + self.from_hidden(hidden)
    entry, forget, candidate, out = gates.chunk(4, 1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(entry) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(cell), cell


LSTM_STEP = graph(lambda nn: {"from_input": nn.Linear(10, 48), "from_hidden": nn.Linear(12, 48)}, lstm_gates)
PNET = graph(
    lambda nn: {
        "body": nn.Sequential(
            nn.Conv2d(3, 10, 3),
            nn.PReLU(10),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(10, 16, 3),
            nn.PReLU(16),
            nn.Conv2d(16, 32, 3),
            nn.PReLU(32),
        ),
        "classes": nn.Conv2d(32, 2, 1),
        "boxes": nn.Conv2d(32, 4, 1),
    },
    lambda torch, self, x: (torch.softmax(self.classes(self.body(x)), 1), self.boxes(self.body(x))),
)
DS_CNN = layers(
    lambda nn: conv_bn(nn, 1, 16, (10, 4), stride=2, padding=(5, 1)),
    lambda nn: conv_bn(nn, 16, 16, 3, padding=1, groups=16),
    lambda nn: conv_bn(nn, 16, 16, 1),
    lambda nn: conv_bn(nn, 16, 16, 3, padding=1, groups=16),
    lambda nn: conv_bn(nn, 16, 16, 1),
    lambda nn: nn.AdaptiveAvgPool2d(1),
    lambda nn: nn.Flatten(),
    lambda nn: nn.Linear(16, 12),
)
AUTOENCODER = layers(
    lambda nn: nn.Linear(80, 32),
    lambda nn: nn.BatchNorm1d(32),
    lambda nn: nn.ReLU(),
    lambda nn: nn.Linear(32, 8),
    lambda nn: nn.ReLU(),
    lambda nn: nn.Linear(8, 80),
)
CASCADE = layers(
    lambda nn: conv_bn(nn, 3, 16, 3, padding=1),
    lambda nn: conv_bn(nn, 16, 24, 3, padding=1),
    lambda nn: conv_bn(nn, 24, 24, 3, padding=1, groups=24),
    lambda nn: conv_bn(nn, 24, 40, 3, stride=2, padding=1),
    lambda nn: nn.Conv2d(40, 8, 1),
)

NORMALISATION: Mapping[str, Case] = {
    "softmax": Case(layers(lambda nn: nn.Softmax(-1)), ((3, 20),)),
    "softmax_channels": Case(layers(lambda nn: nn.Softmax(1)), ((1, 9, 5, 6),)),
    "softmax_int16": Case(layers(lambda nn: nn.Softmax(-1)), ((3, 20),), "int16"),
    "log_softmax": Case(layers(lambda nn: nn.LogSoftmax(-1)), ((3, 20),)),
    "layer_norm": Case(layers(lambda nn: nn.LayerNorm(24)), ((1, 5, 24),)),
    "layer_norm_int16": Case(layers(lambda nn: nn.LayerNorm(24)), ((1, 5, 24),), "int16"),
    "group_norm": Case(layers(lambda nn: nn.GroupNorm(2, 8)), _IMAGE),
    "instance_norm": Case(layers(lambda nn: nn.GroupNorm(8, 8)), _IMAGE),
    "batch_norm": Case(layers(lambda nn: nn.BatchNorm2d(8)), _IMAGE),
    "cumulative_sum": Case(function(lambda torch, x: torch.cumsum(x, 1)), ((2, 9, 5),)),
    "vector_norm": Case(function(lambda torch, x: torch.nn.functional.normalize(x, dim=1)), ((3, 24),)),
}

NETWORKS: Mapping[str, Case] = {
    "digits_cnn": Case(
        layers(
            lambda nn: nn.Conv2d(1, 8, 3, padding=1),
            lambda nn: nn.ReLU(),
            lambda nn: nn.MaxPool2d(2),
            lambda nn: nn.Conv2d(8, 16, 3, padding=1),
            lambda nn: nn.ReLU(),
            lambda nn: nn.Flatten(),
            lambda nn: nn.Linear(256, 10),
        ),
        ((1, 1, 8, 8),),
    ),
    "inverted_residual": Case(INVERTED_RESIDUAL, ((1, 16, 14, 14),)),
    "inverted_residual_int16": Case(INVERTED_RESIDUAL, ((1, 16, 9, 9),), "int16"),
    "resnet_block": Case(RESNET_BLOCK, ((1, 12, 14, 13),)),
    "attention": Case(ATTENTION, ((1, 12, 16),)),
    "attention_int16": Case(ATTENTION, ((1, 12, 16),), "int16", profiles=U85),
    "masked_attention": Case(masked_attention, ((1, 12, 16),)),
    "encoder_layer": Case(ENCODER_LAYER, ((1, 10, 16),)),
    "squeeze_excite": Case(SQUEEZE_EXCITE, ((1, 24, 8, 8),)),
    "mlp": Case(
        layers(
            lambda nn: nn.Linear(64, 300),
            lambda nn: nn.ReLU(),
            lambda nn: nn.Linear(300, 40),
            lambda nn: nn.Softmax(-1),
        ),
        ((1, 64),),
    ),
    "fire": Case(FIRE, ((1, 16, 9, 8),)),
    "unet": Case(UNET, ((1, 8, 12, 16),)),
    "lstm_step": Case(LSTM_STEP, ((2, 10), (2, 12), (2, 12))),
    "lstm_step_int16": Case(LSTM_STEP, ((2, 10), (2, 12), (2, 12)), "int16"),
    "pnet": Case(PNET, ((1, 3, 20, 22),)),
    "ds_cnn": Case(DS_CNN, ((1, 1, 49, 10),)),
    "autoencoder": Case(AUTOENCODER, ((1, 80),)),
    "matmul": Case(function(lambda torch, x, y: x @ y), ((3, 7, 20), (3, 20, 11))),
    "matmul_wide": Case(function(lambda torch, x, y: x @ y), ((1, 40, 130), (1, 130, 70))),
    "matmul_int16": Case(
        function(lambda torch, x, y: x @ y), ((2, 7, 20), (2, 20, 11)), "int16", profiles=U85
    ),
    "cascade": Case(CASCADE, ((1, 3, 40, 36),)),
    "cascade_for_size": Case(CASCADE, ((1, 3, 40, 36),), flags=("--optimise=Size",)),
    "cascade_small_arena": Case(CASCADE, ((1, 3, 40, 36),), flags=("--arena-cache-size=24000",)),
}


def branches(torch: Any, x: Any) -> Any:
    """One of two computations by a value."""
    return torch.cond(x.sum() > 0, lambda v: torch.sigmoid(v) + v, lambda v: v * 0.5, [x])


def int32_branches(torch: Any, x: Any, y: Any) -> Any:
    """The same on integers."""
    return torch.cond((x[0, :1] > y[0, :1]).squeeze(), lambda v, w: v + w, lambda v, w: v - w, [x, y])


def loop(torch: Any, x: Any) -> Any:
    """Halved until the sum is small."""
    return torch.ops.higher_order.while_loop(
        lambda v: torch.gt(v.sum(), torch.full((1,), 6.0)).squeeze(),
        lambda v: (torch.mul(v, torch.full((1,), 0.5)),),
        (x,),
        (),
    )[0]


CONTROL: Mapping[str, Case] = {
    "branches": Case(function(branches), ((2, 12),), BRANCHES, profiles=U85),
    "branches_int32": Case(
        function(int32_branches), (Integers((2, 12)), Integers((2, 12))), "none", profiles=U85
    ),
    "loop": Case(function(loop), ((2, 12),), BRANCHES, profiles=U85),
}
