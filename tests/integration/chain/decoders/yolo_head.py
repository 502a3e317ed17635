# Anchor-based detection at two scales, decoded in place as YOLOv5 does: offsets to the cell, sizes to the anchor.
import torch
from torch import nn

torch.manual_seed(0)
ANCHORS, CLASSES = 3, 4
VALUES = CLASSES + 5


def grid(side, scale):
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack((x, y), 2).expand(1, ANCHORS, side, side, 2) / scale


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(16, 24, 3, 2, 1), nn.SiLU())
        self.predict = nn.ModuleList(nn.Conv2d(width, ANCHORS * VALUES, 1) for width in (16, 24))
        for number, side in enumerate((8, 4)):
            self.register_buffer(f"grid{number}", grid(side, side))
            self.register_buffer(f"size{number}", (torch.rand(1, ANCHORS, 1, 1, 2) + 0.5) * (number + 1) / 8)

    def forward(self, image):
        fine = self.stem(image)
        found = []
        for number, features in enumerate((fine, self.down(fine))):
            side = features.shape[-1]
            raw = self.predict[number](features).view(1, ANCHORS, VALUES, side, side)
            rows = raw.permute(0, 1, 3, 4, 2).sigmoid()
            rows[..., 0:2] = (rows[..., 0:2] * 2 - 0.5) / side + getattr(self, f"grid{number}")
            rows[..., 2:4] = (rows[..., 2:4] * 2) ** 2 * getattr(self, f"size{number}")
            found.append(rows.reshape(1, -1, VALUES))
        return torch.cat(found, 1)


def draw():
    return (torch.rand(1, 3, 32, 32) * 2 - 1,)


model = Detector().eval()
example_inputs = draw()
calibration = [draw() for _ in range(16)]
samples = [draw() for _ in range(8)]
