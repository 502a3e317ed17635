# The mean of the last four inputs, kept in a buffer whose slices are copied.
import torch
from torch import nn


class MovingMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1, 4, 8))

    def forward(self, x):
        self.last[:, :-1].copy_(self.last[:, 1:].clone())
        self.last[:, -1].copy_(x)
        return self.last.mean(1)


def draw():
    return (torch.rand(1, 8) * 2 - 1,)


torch.manual_seed(0)
model = MovingMean()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = calibration[:4]
