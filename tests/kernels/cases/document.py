"""docs/reference/kernels.md: every operator that the firmware computes, the dtypes that test it, its bound.

``python -m tests.kernels.cases.document`` writes it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ethosu_sdk.base import filesystem
from ethosu_sdk.firmware_build.generated_files import kernel_manifest
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall, Tensor
from tests.kernels.cases import bounds
from tests.kernels.cases.programs import groups, lowered_group
from tests.kernels.interpreter.runner import MANIFEST
from tests.places import ROOT

PATH = ROOT / "docs" / "reference" / "kernels.md"
HEAD = """# CPU kernels

These kernels (`firmware/kernels/`) compute on the Cortex-M what is not delegated to the NPU. A build links exactly
those that its program calls. Each kernel is compared with ExecuTorch 1.5.1's own runtime, on the host and on QEMU's
Cortex-M55 (`tests/kernels/test_kernels.py`). `python -m tests.kernels.cases.document` writes this page.

`cortex_m` operators are those of ExecuTorch's Cortex-M backend, all 23 of the dialect. They are compared with the
references in Python that ExecuTorch registers beside them, and images must have their channels last. The last bit of
PyTorch's exponentials can change a result of `softmax` that lies next to a tie; ExecuTorch's own test of it allows
CMSIS-NN's integers 2 steps. Where Helium (MVE) is worth it, kernels compute in vectors with the bits of the scalar
loop; `tests/kernels/test_twins.py` compares the two on QEMU. `quantize_per_tensor` to int8 takes 1.2 instructions an
element, or 1.1 with a zero point of -128, and 1.4 cycles or 1.2 on a Cortex-M55, as modelled without memory. It and
`dequantize_per_tensor` change the layout of images as they go; ExecuTorch's do not.

The kernels differ from ExecuTorch's on purpose in these points:

- `ceil`, `floor`, `round` and `trunc` leave integers unchanged; ExecuTorch's convert 32-bit integers to float.
- `sum` adds int64 exactly, as PyTorch does; ExecuTorch's uses float32.
- `fmod` and `div` with a rounding mode keep integers above 2^53; ExecuTorch's convert them to float64.
- `div` divides; ExecuTorch's optimised kernel multiplies by a lone divisor's reciprocal (1 ulp).
- `mm`, `bmm` and `linear` sum in index order; ExecuTorch's optimised ones in the order of their blocks.
- Powers of integers wrap if they do not fit; ExecuTorch's use float64, and C++ leaves the result undefined.
- `constant_pad_nd` pads channels_last tensors by their dimensions, also by negative margins, and batch
  normalisation accepts channels_last; ExecuTorch's do not.
- Functions of one number, powers, normalisation and resampling compute float32 and integers, not float64.
- An index out of range, a division of integers by zero, or sizes that do not fit give a named error and no output.

These operators are equal to ExecuTorch's, bit for bit. Dtypes are those of the tensor inputs in the compared
programs; operators with *none* have no such inputs, or tests of their own.

| Dtypes | Operators |
|---|---|
"""
WITHIN = """
These are equal within a bound: units in the last place, or absolute + relative.

| Operator | Dtypes | Bound |
|---|---|---|
"""


def text(operators: Iterable[str], plans: Sequence[ExecutionPlan]) -> str:
    """The document's text for a manifest's operators and the tested programs."""
    dtypes: dict[str, set[str]] = defaultdict(set)
    for plan in plans:
        for call in plan.instructions:
            if isinstance(call, KernelCall):
                dtypes[plan.operators[call.op_index].full_name] |= _input_dtypes(plan, call.args)
    table = bounds.bounds()
    exact: dict[str, list[str]] = defaultdict(list)
    within = []
    for operator in sorted(operators):
        bound = next((table[name] for name in _names(operator) if name in table), None)
        shown = ", ".join(sorted(dtypes[operator])) or "none"
        if bound is None:
            exact[shown].append(f"`{operator}`")
        else:
            within.append(f"| `{operator}` | {shown} | {bound} |\n")
    rows = [f"| {shown} | {', '.join(names)} |\n" for shown, names in sorted(exact.items())]
    reasons = {
        bound.why: sorted(n for n, b in table.items() if b.why == bound.why) for bound in table.values()
    }
    why = "".join(
        f"- {', '.join(f'`{name}`' for name in names)}: {reason}\n" for reason, names in reasons.items()
    )
    return f"{HEAD}{''.join(rows)}{WITHIN}{''.join(within)}\nWhy these are not exact:\n\n{why}"


def _input_dtypes(plan: ExecutionPlan, arguments: Sequence[int]) -> set[str]:
    # The outputs come last: once among the parameters, and once as what the operator returns.
    tensors = [
        value for value in (plan.values[index] for index in arguments[:-2]) if isinstance(value, Tensor)
    ]
    return {tensor.dtype for tensor in tensors}


def _names(operator: str) -> tuple[str, ...]:
    """What bounds.toml may call an operator."""
    name = operator.partition("::")[2].partition(".")[0]
    return (name, name.removesuffix("_copy"), name.removeprefix("_"), name.removeprefix("native_"))


def main() -> None:
    """Write the document."""
    plans = [pte.parse(lowered_group(name).program).plan() for name in groups()]
    filesystem.write_bytes(PATH, text(kernel_manifest(MANIFEST), plans).encode())


if __name__ == "__main__":
    main()
