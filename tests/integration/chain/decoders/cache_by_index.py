# One layer of attention whose caches are written by index_copy_ at a position that is an input, as a token loop
# gives it; later positions are masked.
import torch
from torch import nn

torch.manual_seed(0)
WIDTH, HEADS, LENGTH = 16, 2, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x, position, mask):
        q, k, v = (f(x).view(1, 1, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        scores = q @ self.keys.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + mask
        y = torch.softmax(scores, -1) @ self.values
        return x + self.o(y.transpose(1, 2).reshape(1, 1, WIDTH))


def step(number):
    position = number % LENGTH
    mask = torch.where(torch.arange(LENGTH) <= position, 0.0, -8.0).view(1, 1, 1, LENGTH)
    return torch.rand(1, 1, WIDTH) * 2 - 1, torch.tensor([position]), mask


model = Layer().eval()
example_inputs = step(0)
calibration = [step(number) for number in range(16)]
samples = [step(number) for number in range(8)]
