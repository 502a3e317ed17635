# Whole numbers that need more than 32 bits.
import torch
from torch import nn


class Tripled(nn.Module):
    def forward(self, x):
        return x * 3


model = Tripled()
example_inputs = (torch.tensor([[2**40, 2**33 + 1, -5]]),)
samples = [(torch.tensor([[2**40 + i, -(2**35) - i, 7 * i]]),) for i in range(4)]
