# One layer of attention over the last eight tokens. The caches are shifted by slice assignment.
import torch
from torch import nn

torch.manual_seed(0)
WIDTH, HEADS, LENGTH = 16, 2, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

    def forward(self, x):
        q, k, v = (f(x).view(1, 1, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        self.keys[:, :, :-1] = self.keys[:, :, 1:].clone()
        self.keys[:, :, -1:] = k
        self.values[:, :, :-1] = self.values[:, :, 1:].clone()
        self.values[:, :, -1:] = v
        weights = torch.softmax(q @ self.keys.transpose(2, 3) * (WIDTH // HEADS) ** -0.5, -1)
        x = x + self.o((weights @ self.values).transpose(1, 2).reshape(1, 1, WIDTH))
        return x + self.down(torch.relu(self.up(x)))


def draw():
    return (torch.rand(1, 1, WIDTH) * 2 - 1,)


model = Layer().eval()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = [draw() for _ in range(8)]
