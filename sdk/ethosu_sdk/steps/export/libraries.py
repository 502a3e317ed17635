"""The libraries of ExecuTorch's own build that have the kernels of a program.

Targets and options as in ExecuTorch's CMake files: backends/cortex_m, kernels/quantized, kernels/portable,
examples/arm/executor_runner and zephyr.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ethosu_sdk.records.export import Library


@dataclass(frozen=True)
class _Family:
    """The operators of `namespaces`: the library `registers` makes them known to the runtime, `kernels` computes them
    with what is in `needs`; ExecuTorch builds them if `option` is on."""

    namespaces: tuple[str, ...]
    registers: str
    kernels: str
    needs: tuple[str, ...]
    option: str | None


_FAMILIES = (
    _Family(
        ("cortex_m",), "cortex_m_ops_lib", "cortex_m_kernels", ("cmsis-nn",), "EXECUTORCH_BUILD_CORTEX_M"
    ),
    _Family(
        ("quantized_decomposed",),
        "quantized_ops_lib",
        "quantized_kernels",
        (),
        "EXECUTORCH_BUILD_KERNELS_QUANTIZED",
    ),
    _Family(("aten", "dim_order_ops"), "portable_ops_lib", "portable_kernels", (), None),
)


def of(kernels: Sequence[str]) -> Iterator[Library]:
    """The libraries that have `kernels`, each with those that it has. Operators of other namespaces are in none."""
    for family in _FAMILIES:
        own = tuple(name for name in kernels if name.partition("::")[0] in family.namespaces)
        if own:
            yield Library(
                name=family.registers,
                links=(family.kernels, *family.needs),
                option=family.option,
                kernels=own,
            )


def comments(rows: Sequence[Library], kernels: Sequence[str]) -> Iterator[str]:
    """A line of a comment for each library, and one for operators that no library of ExecuTorch has."""
    for row in rows:
        yield f"# {row.name}, with {', '.join(row.links)}: {', '.join(row.kernels)}"
    known = {name for row in rows for name in row.kernels}
    others = [name for name in kernels if name not in known]
    if others:
        yield f"# in no library of ExecuTorch, so register them yourself: {', '.join(others)}"
