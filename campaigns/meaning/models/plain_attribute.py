# A leaky integrator whose state is a tensor that nobody registered.
import torch
from torch import nn

torch.manual_seed(0)


class Integrator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.level = torch.zeros(1, 8)

    def forward(self, x):
        level = self.level * 0.8 + self.layer(x)
        self.level.copy_(level)
        return level * 2


def draw():
    return (torch.rand(1, 8) * 2 - 1,)


model = Integrator().eval()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = calibration[:4]
