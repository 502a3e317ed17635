"""What a program must be to generate text: one token and its position in, the logits of the next token out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ethosu_sdk import npz, pte
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.plain_text import counted

_WHOLE = ("int32", "int64")
_NEEDED = (
    "generate needs input0, a token (int32 or int64, one element), perhaps input1, its position (the same), and "
    "output0, the logits of the next token along the last axis; caches are inside as mutable buffers"
)


@dataclass(frozen=True)
class Decoder:
    """A decoder's program: dtype and shape of its inputs, the vocabulary, and the positions of its caches."""

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    vocabulary: int
    context: int | None

    def room(self, prompt: Sequence[int], wanted: int) -> int:
        """How many tokens can be generated behind `prompt`: `wanted` at most. UsageError for a prompt that is too
        long, or has tokens beyond the vocabulary."""
        self.check_tokens(prompt)
        if self.context is None:
            return wanted
        if len(prompt) > self.context:
            raise UsageError(
                f"the prompt has {counted(len(prompt), 'token')}, the model's caches hold "
                f"{counted(self.context, 'position')}",
                "give a shorter prompt",
            )
        # The last token that is generated is taken by no step: it needs no position.
        return min(wanted, self.context - len(prompt) + 1)

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """UsageError for a token that is not below the vocabulary's size."""
        beyond = next((token for token in tokens if token >= self.vocabulary), None)
        if beyond is not None:
            raise UsageError(
                f"there is no token {beyond}: the model has {self.vocabulary:,}",
                "give tokens of the model's own tokenizer",
            )

    def write_inputs(self, path: Path, tokens: Sequence[int], positions: Sequence[int] = ()) -> None:
        """Write the rows of the inputs for `tokens` to `path`: positions from 0 on, or the given ones; with one
        position, further steps count on."""
        (dtype, shape), *rest = self.inputs
        rows = {"input0": np.array(tokens, dtype).reshape(len(tokens), *shape)}
        if rest:
            dtype, shape = rest[0]
            places = positions or range(len(tokens))
            rows["input1"] = np.array([*places], dtype).reshape(len(tokens), *shape)
        npz.write_npz(path, rows)

    @property
    def feeds_position(self) -> tuple[str, ...]:
        """The feed that counts positions, where the program takes them."""
        return ("step:input1",) if len(self.inputs) > 1 else ()


def of(path: Path, program: pte.Pte, context: int | None) -> Decoder:
    """The decoder in the program at `path`. InputError for a program that is none."""
    plan = program.plan()
    inputs = tuple((row.dtype, row.sizes) for row in plan.input_tensors())
    outputs = [(row.dtype, row.sizes) for row in plan.output_tensors()]
    if not 1 <= len(inputs) <= 2 or any(
        dtype not in _WHOLE or int(np.prod(shape, dtype=np.int64)) != 1 for dtype, shape in inputs
    ):
        found = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in inputs)
        raise InputError(f"{path.name} takes {found}: it is no decoder that can go on with tokens", _NEEDED)
    if not outputs or outputs[0][0] != "float32" or not outputs[0][1]:
        raise InputError(f"{path.name} has no logits as its first output", _NEEDED)
    return Decoder(inputs, outputs[0][1][-1], context or _positions(plan))


def _positions(plan: pte.ExecutionPlan) -> int | None:
    """The positions of the caches, the third axis of every buffer of four; None where nothing says it."""
    found = {row.sizes[2] for row in plan.state_tensors() if len(row.sizes) == 4}
    return found.pop() if len(found) == 1 else None
