"""A decoder with one layer of attention and a wide vocabulary: two tables of it need 2.5 million bytes in int8."""

import torch
from torch import nn

torch.manual_seed(5)
VOCABULARY, WIDTH, HEADS, CONTEXT = 20_000, 64, 2, 16


class Decoder(nn.Module):  # type: ignore[misc]
    """One step: token int64 [1, 1], position int64 [1]; logits float32 [1, 1, VOCABULARY]."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.register_buffer("later", torch.full((CONTEXT, CONTEXT), -8.0).triu(1))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, CONTEXT, WIDTH // HEADS))

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Attend to the positions up to this one."""
        x = self.tokens(token)
        rows = [
            layer(x).view(1, 1, HEADS, -1).transpose(1, 2) for layer in (self.query, self.key, self.value)
        ]
        self.keys.index_copy_(2, position, rows[1])
        self.values.index_copy_(2, position, rows[2])
        scores = rows[0] @ self.keys.transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        scores = scores + self.later.index_select(0, position).view(1, 1, 1, CONTEXT)
        mixed = torch.softmax(scores, -1) @ self.values
        return self.head(x + self.out(mixed.transpose(1, 2).reshape(1, 1, WIDTH)))


model = Decoder().eval()
calibration = [(torch.randint(0, VOCABULARY, (1, 1)), torch.tensor([place])) for place in range(CONTEXT)]
example_inputs = calibration[0]
