# A filter of signals a thousand times smaller than 1.
import torch
from torch import nn

torch.manual_seed(0)


def draw():
    return ((torch.rand(1, 1, 64) * 2 - 1) * 1e-3,)


model = nn.Sequential(nn.Conv1d(1, 8, 9, bias=False), nn.ReLU(), nn.Conv1d(8, 4, 5, bias=False)).eval()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = calibration[:4]
