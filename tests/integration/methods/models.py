"""Files of models with several methods, as a user writes them."""

# A block of attention over a cache: `prefill` fills it with many steps at once, `decode` with one.
DECODER = """
import torch
from torch import nn

STEPS, WIDTH = 32, 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.register_buffer("keys", torch.zeros(1, STEPS, WIDTH))
        self.register_buffer("values", torch.zeros(1, STEPS, WIDTH))

    def prefill(self, x, position):
        return self.attend(x, position)

    def decode(self, x, position):
        return self.attend(x, position)

    def attend(self, x, position):
        self.keys.index_copy_(1, position, self.k(x))
        self.values.index_copy_(1, position, self.v(x))
        scores = self.q(x) @ self.keys.transpose(1, 2) / WIDTH**0.5
        seen = torch.arange(STEPS) <= position.unsqueeze(1)
        weights = torch.softmax(torch.where(seen, scores, -1e4), -1)
        return x + self.out(weights @ self.values)


model = Decoder().eval()
X = torch.randn(1, STEPS, WIDTH, generator=torch.Generator().manual_seed(1))
PLACES = torch.arange(STEPS)
methods = {
    "prefill": (model.prefill, (X[:, :16], PLACES[:16]), [(X[:, :16], PLACES[:16])]),
    "decode": (
        model.decode,
        (X[:, :1], PLACES[:1]),
        [(X[:, i : i + 1], PLACES[i : i + 1]) for i in range(STEPS)],
    ),
}
"""

# `encode` writes a state that `score` only reads; what `score` chooses is what it scores next.
MEMORY = """
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.project, self.out = nn.Linear(4, 8), nn.Linear(8, 5, bias=False)
        self.register_buffer("memory", torch.zeros(1, 8))

    def encode(self, x):
        self.memory.copy_(torch.tanh(self.project(x)))
        return self.out(x.repeat(1, 2))

    def score(self, token):
        return self.out(self.memory * (1.5 - token.float()))


model = Memory().eval()
X = torch.tensor([[1.0, -2.0, 0.5, 3.0]])


def methods():
    tokens = [(torch.tensor([[n]]),) for n in range(5)]
    return {"encode": (model.encode, X), "score": (model.score, tokens[1], tokens)}
"""
