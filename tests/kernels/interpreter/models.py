"""Small programs for the tests of the firmware's interpreter and kernels: PyTorch functions → `.pte`.

Lowering costs about 0.3 s a method, so a method computes many cases at once; and a program has several methods, so
finding one by its name is tested on the way.
"""

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy
from numpy.typing import NDArray

from ethosu_sdk.compile import acceleration
from tests.places import ROOT

Array = NDArray[Any]
_COMPILE = ROOT / "sdk" / "ethosu_sdk" / "compile"
LOWERING = (_COMPILE / "acceleration.py", _COMPILE / "lowering.py", *_COMPILE.glob("rewrite/*.py"))


@dataclass(frozen=True)
class Case:
    """A function of tensors and its inputs.

    The function gets the module ``torch`` first, so that tables of cases need not import it; or it is a
    ``torch.nn.Module``. With ``channels_last`` inputs of rank 4 have that memory format. ``outputs`` is how many
    tensors it returns.
    """

    function: Any
    inputs: tuple[Array, ...]
    channels_last: bool = False
    outputs: int = 1

    def tensors(self) -> tuple[Any, ...]:
        """The inputs as torch tensors."""
        import torch

        # The clone has PyTorch's own strides: NumPy's are 0 when there are no elements.
        form = torch.contiguous_format
        tensors = [torch.from_numpy(numpy.array(array)).clone(memory_format=form) for array in self.inputs]
        if self.channels_last:
            tensors = [t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in tensors]
        return tuple(tensors)

    def stored_inputs(self) -> list[Array]:
        """The inputs with their elements in memory order."""
        permute = self.channels_last
        return [
            array.transpose(0, 2, 3, 1) if permute and array.ndim == 4 else array for array in self.inputs
        ]


def method(name: str, *options: Any, **more: Any) -> Callable[..., Any]:
    """torch.NAME of the inputs, then the options."""
    return lambda torch, *inputs: getattr(torch, name)(*inputs, *options, **more)


def functional(name: str, *options: Any, **more: Any) -> Callable[..., Any]:
    """torch.nn.functional.NAME of the inputs, then the options."""
    return lambda torch, *inputs: getattr(torch.nn.functional, name)(*inputs, *options, **more)


Method = Sequence[Case]


def tensors(method: Method) -> tuple[Any, ...]:
    """The inputs of all cases."""
    return tuple(tensor for case in method for tensor in case.tensors())


def stored_inputs(method: Method) -> list[Array]:
    """The inputs of all cases with their elements in memory order."""
    return [array for case in method for array in case.stored_inputs()]


@contextmanager
def lowering() -> Iterator[None]:
    """Registers ExecuTorch's operators, silences PyTorch's own deprecations, and takes the SDK's short cuts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import executorch.kernels.quantized  # noqa: F401 - out variants and kernels
        import torch.ao.quantization.fx._decomposed  # noqa: F401 - quantized_decomposed

        with acceleration.accelerated():
            yield


def edge_program(
    methods: Mapping[str, Method], *, dim_order: bool = True, preserve: Sequence[str] = ()
) -> Any:
    """The edge program with these methods; without `dim_order` copies are aten::clone and numbers stay numbers.

    `preserve` names operators that are not decomposed, such as ``aten.linear.default``.
    """
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge

    programs = {name: torch.export.export(_module(cases), tensors(cases)) for name, cases in methods.items()}
    kept = [operator.attrgetter(name)(torch.ops) for name in preserve]
    config = EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=not dim_order, preserve_ops=kept)
    return to_edge(programs, compile_config=config)


def lower(
    methods: Mapping[str, Method], *, dim_order: bool = True, preserve: Sequence[str] = (), **config: Any
) -> bytes:
    """The `.pte` with these methods; `dim_order`, `preserve` as above, `config` goes to ExecutorchBackendConfig."""
    with lowering():
        from executorch.exir import ExecutorchBackendConfig

        edge = edge_program(methods, dim_order=dim_order, preserve=preserve)
        return bytes(edge.to_executorch(ExecutorchBackendConfig(**config)).buffer)


def lower_dynamic(module: Any, inputs: tuple[Any, ...], shapes: Mapping[str, Any]) -> bytes:
    """The `.pte` of one module with `dynamic_shapes` as `torch.export` takes them."""
    with lowering():
        import torch
        from executorch.exir import EdgeCompileConfig, to_edge

        exported = torch.export.export(module, inputs, dynamic_shapes=shapes)
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        return bytes(edge.to_executorch().buffer)


def _module(method: Method) -> Any:
    import torch

    class Cases(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            modules = [case.function for case in method if isinstance(case.function, torch.nn.Module)]
            self.own = torch.nn.ModuleList(modules)

        def forward(self, *inputs: Any) -> Any:
            outputs: list[Any] = []
            for case in method:
                own, inputs = inputs[: len(case.inputs)], inputs[len(case.inputs) :]
                is_module = isinstance(case.function, torch.nn.Module)
                result = case.function(*own) if is_module else case.function(torch, *own)
                outputs.extend(result if isinstance(result, tuple | list) else [result])
            return tuple(outputs)

    return Cases().eval()


def run_eagerly(method: Method) -> list[Array]:
    """The outputs as PyTorch computes them, without a program."""
    import torch

    with torch.no_grad(), exact_integer_convolutions():
        return [numpy.array(output.numpy(), order="C") for output in _module(method)(*tensors(method))]


@contextmanager
def exact_integer_convolutions() -> Iterator[None]:
    """PyTorch has no dilated convolution of int32: those of integers are computed in float64, which is exact."""
    import torch

    convolve = torch.nn.functional.conv2d

    def convolve_exactly(x: Any, weight: Any, bias: Any = None, *places: Any, **options: Any) -> Any:
        if x.is_floating_point():
            return convolve(x, weight, bias, *places, **options)
        bias = None if bias is None else bias.double()
        return convolve(x.double(), weight.double(), bias, *places, **options).to(x.dtype)

    with mock.patch.object(torch.nn.functional, "conv2d", convolve_exactly):
        yield


class HostRuntime:
    """ExecuTorch's own C++ runtime and kernels, as the wheel ships them: the oracle."""

    def __init__(self, program: bytes) -> None:
        with lowering():
            from executorch.runtime import Runtime

            self._program = Runtime.get().load_program(program)

    def run(self, name: str, method: Method) -> list[Array]:
        """The outputs in model order. Loads the method afresh, so nothing remains of an earlier run."""
        return self.run_tensors(name, tensors(method))

    def run_tensors(self, name: str, inputs: tuple[Any, ...]) -> list[Array]:
        """The same for torch tensors."""
        outputs = self._program.load_method(name).execute(inputs)
        return [numpy.array(output.numpy(), order="C") for output in outputs]
