"""Small programs for the tests of the firmware's interpreter and kernels: PyTorch functions → `.pte`.

One program holds many methods, one for each case: lowering costs seconds, and finding a method by its name is
tested on the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A function of tensors and example inputs, which give it its shapes and dtypes."""

    function: Callable[..., Any]
    inputs: tuple[Array, ...]
    channels_last: bool = False


def to_tensors(arrays: tuple[Array, ...], channels_last: bool = False) -> tuple[Any, ...]:
    """The arrays as torch tensors; those of rank 4 in memory format channels_last where that is asked for."""
    import torch

    tensors = [torch.from_numpy(numpy.array(array)) for array in arrays]
    if channels_last:
        tensors = [t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in tensors]
    return tuple(tensors)


def lower(cases: Mapping[str, Case], **config: Any) -> bytes:
    """The `.pte` with one method for each case; `config` goes to ExecutorchBackendConfig."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own deprecations
        import executorch.kernels.quantized  # noqa: F401 - registers out variants
        import torch
        import torch.ao.quantization.fx._decomposed  # noqa: F401 - registers quantized_decomposed
        from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge

        programs = {}
        for name, case in cases.items():
            module = case.function if isinstance(case.function, torch.nn.Module) else _module(case.function)
            inputs = to_tensors(case.inputs, case.channels_last)
            programs[name] = torch.export.export(module.eval(), inputs)
        edge = to_edge(programs, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        return bytes(edge.to_executorch(ExecutorchBackendConfig(**config)).buffer)


def _module(function: Callable[..., Any]) -> Any:
    import torch

    class Wrapped(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    return Wrapped()


class HostRuntime:
    """ExecuTorch's own C++ runtime and kernels, as the wheel ships them: the oracle."""

    def __init__(self, program: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import executorch.kernels.quantized  # noqa: F401 - registers the kernels
            from executorch.runtime import Runtime

            self._program = Runtime.get().load_program(program)

    def run(self, method: str, inputs: tuple[Array, ...], channels_last: bool = False) -> list[Array]:
        """The outputs in model order. Loads the method afresh, so nothing remains of an earlier run."""
        outputs = self._program.load_method(method).execute(to_tensors(inputs, channels_last))
        return [numpy.ascontiguousarray(output.numpy()) for output in outputs]
