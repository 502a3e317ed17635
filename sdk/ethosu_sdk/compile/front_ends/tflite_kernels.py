"""Operators of a `.tflite` that stay on the CPU, as calls of the firmware's kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program.pte_builder import ProgramBuilder
from ethosu_sdk.program.tflite import TfliteModel, TfliteOperator, TfliteTensor
from ethosu_sdk.records.compile import State


@dataclass
class Values:
    """The program's value of each tensor of a network, made when it is first asked for."""

    builder: ProgramBuilder
    network: TfliteModel
    _numbers: dict[int, int] = field(default_factory=dict)

    def tensor(self, index: int) -> TfliteTensor:
        return self.network.main.tensors[index]

    def named(self, index: int, name: str) -> int:
        """The value of an input or output, which the program calls `name`."""
        tensor = self.tensor(index)
        if index not in self._numbers and not len(tensor.data):
            self._numbers[index] = self.builder.tensor(self._dtype(tensor), tensor.shape, name=name)
        return self.of(index)

    def of(self, index: int) -> int:
        if index not in self._numbers:
            tensor = self.tensor(index)
            self._numbers[index] = (
                self.builder.constant(tensor.array)
                if len(tensor.data)
                else self.builder.tensor(self._dtype(tensor), tensor.shape)
            )
        return self._numbers[index]

    def state(self) -> tuple[State, ...]:
        return ()

    def _dtype(self, tensor: TfliteTensor) -> str:
        if not tensor.dtype or np.dtype(tensor.dtype).kind not in "iufb":
            raise InputError(
                f"tensor '{tensor.name}' of the model is {tensor.type}, which a program cannot have"
            )
        return tensor.dtype


def add_operator(values: Values, operator: TfliteOperator, reason: str) -> None:
    """Call kernels that do what `operator` does. InputError where none does; `reason` is Vela's to leave it."""
    add = _KERNELS.get(operator.name)
    if add is None:
        raise refusal(values, operator, reason, "the SDK has no kernel for it on the CPU")
    add(values, operator)


def refusal(values: Values, operator: TfliteOperator, reason: str, why: str) -> InputError:
    output = values.tensor(operator.outputs[0]).name if operator.outputs else ""
    words = f" ({reason})" if reason else ""
    return InputError(
        f"operator {operator.index} ({operator.name}, '{output}') is left to the CPU by Vela{words}, and {why}",
        "replace it in the model by operators that the NPU does, or cut the model before it; docs/guide/tflite.md "
        "lists what runs on the CPU",
    )


_KERNELS: dict[str, Callable[[Values, TfliteOperator], None]] = {}
