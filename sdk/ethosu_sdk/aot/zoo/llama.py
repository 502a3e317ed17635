"""``zoo:llama_1m``, ``zoo:llama_15m``, ``zoo:llama_42m``: decoders in the shape of Llama, as ExecuTorch's wheel
defines them (``executorch.examples.models.llama``), with random weights from a fixed seed.

One step takes a token and its position and gives the logits of the next token. Keys and values of earlier positions
are in mutable buffers. The sizes of 15 and 42 million parameters are those of Karpathy's TinyStories models
(``stories15M``, ``stories42M`` in llama2.c), which also share the embedding with the output layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel

CONTEXT = 64  # positions that the caches hold
_SEED = 11
# An embedding that is small beside what the layers add: otherwise the shared output layer would repeat each token.
_EMBEDDING_DEVIATION = 0.02


@dataclass(frozen=True)
class _Shape:
    dim: int
    layers: int
    heads: int
    hidden: int
    vocabulary: int


def _build(shape: _Shape) -> ZooModel:
    """Example: the first calibration sample. Calibration: a sequence of CONTEXT random tokens, step by step."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        module = _module(shape)
        tokens = torch.randint(0, shape.vocabulary, (CONTEXT,)).tolist()
    steps = tuple((torch.tensor([[token]]), torch.tensor([place])) for place, token in enumerate(tokens))
    return ZooModel(module, tuple(value.clone() for value in steps[0]), steps)


def _module(shape: _Shape) -> Any:
    import torch
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        """One step: token int64 [1, 1], position int64 [1]; logits float32 [1, 1, vocabulary]."""

        def __init__(self) -> None:
            super().__init__()
            self.transformer = construct_transformer(
                ModelArgs(
                    dim=shape.dim,
                    n_layers=shape.layers,
                    n_heads=shape.heads,
                    hidden_dim=shape.hidden,
                    vocab_size=shape.vocabulary,
                    max_seq_len=CONTEXT,
                    max_context_len=CONTEXT,
                    use_kv_cache=True,
                    generate_full_logits=True,
                )
            )
            self.transformer.output.weight = self.transformer.tok_embeddings.weight

        def forward(self, token: Any, input_pos: Any) -> Any:
            return self.transformer(token, {"input_pos": input_pos})

    made = Decoder()
    for name, values in made.named_parameters():
        if values.dim() == 2:
            embedding = name == "transformer.tok_embeddings.weight"
            deviation = _EMBEDDING_DEVIATION if embedding else values.shape[1] ** -0.5
            torch.nn.init.normal_(values, std=deviation)
    return made.eval()


def llama_1m() -> ZooModel:
    """0.9 million parameters."""
    return _build(_Shape(dim=128, layers=4, heads=4, hidden=352, vocabulary=1024))


def llama_15m() -> ZooModel:
    """15.2 million parameters, as stories15M."""
    return _build(_Shape(dim=288, layers=6, heads=6, hidden=768, vocabulary=32000))


def llama_42m() -> ZooModel:
    """41.7 million parameters, as stories42M."""
    return _build(_Shape(dim=512, layers=8, heads=8, hidden=1376, vocabulary=32000))
