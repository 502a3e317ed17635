# Two inputs, for which the example is one and the same tensor.
import torch
from torch import nn

torch.manual_seed(0)


class Difference(nn.Module):
    def forward(self, left, right):
        return left - 2 * right


def draw():
    return torch.rand(1, 8) * 2 - 1, torch.rand(1, 8) * 2 - 1


model = Difference()
example = torch.rand(1, 8) * 2 - 1
example_inputs = (example, example)
calibration = [draw() for _ in range(16)]
samples = calibration[:4]
