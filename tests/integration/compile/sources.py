"""Models as users write them, each a Python file."""

TWO_INPUTS = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 4, 3)
    def forward(self, x, y):
        return self.conv(x), x - 2 * y
example_inputs = (torch.linspace(-1, 1, 48).view(1, 3, 4, 4), torch.linspace(2, -1, 48).view(1, 3, 4, 4))
"""
