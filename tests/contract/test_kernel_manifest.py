"""The manifest of the firmware's kernels against the operators' schemas, as torch and ExecuTorch register them."""

import importlib

import pytest

from ethosu_sdk.firmware_build.generated_files import Kernel, kernel_manifest
from tests.places import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

KERNELS = kernel_manifest(ROOT / "firmware" / "kernels" / "kernels.toml")
# What ExecuTorch registers in C++ alone: prim_ops/register_prim_ops.cpp of ExecuTorch 1.5.1.
IN_CPP_ALONE = {
    "executorch_prim::et_copy_index.tensor",
    "executorch_prim::et_view.default",
    "executorch_prim::floordiv.int",
    "executorch_prim::mod.int",
}
REGISTERING = (
    "executorch.exir.dialects._ops",
    "executorch.exir.passes",
    "executorch.kernels.quantized",
    "executorch.backends.cortex_m.passes",
)
LEAST_COMPARED = 200


def registered(kernel: Kernel) -> list[str] | None:
    """The names of an operator's parameters, with the output that a functional one gets when it runs."""
    import torch

    for module in REGISTERING:
        importlib.import_module(module)
    namespace, _, name = kernel.name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    operator = getattr(packet, kernel.overload or "default", None)
    if operator is None:
        return None
    schema = operator._schema
    names = [argument.name for argument in schema.arguments]
    written = any(argument.alias_info and argument.alias_info.is_write for argument in schema.arguments)
    return names if written else [*names, "out"]


def test_parameters_are_those_of_the_schemas_in_their_order() -> None:
    found = {name: registered(kernel) for name, kernel in KERNELS.items()}
    assert {name for name, names in found.items() if names is None} == IN_CPP_ALONE
    compared = {name: names for name, names in found.items() if names is not None}
    assert len(compared) >= LEAST_COMPARED
    assert compared == {name: list(KERNELS[name].parameters) for name in compared}
