"""Child process: lowers one group of models and leaves TOSA graphs and Vela's payloads behind.

Usage: python -m tests.conformance.lower FOLDER GROUP. For each model, FOLDER/MODEL gets, per delegate N, ``N.tosa``
and, for each ethos-u55-MACS, the payload ``N-MACS.bin`` and Vela's table of layers ``N-MACS.csv``. It is a process
of its own because the tools print, warn and may end the process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ethosu_sdk.aot import lowering
from ethosu_sdk.aot.vela_capture import spaceless_directory
from ethosu_sdk.targets import parse_target
from tests.conformance.models import GROUPS, Case
from tests.conformance.tosa_graphs import GRAPHS, NUMERIC

MACS = (32, 64, 128, 256)
_LOWERED_FOR = 128
_CALIBRATION_SAMPLES = 4


def compile_for(macs: int, tosa: bytes) -> tuple[bytes, bytes]:
    """The delegate payload of a TOSA graph for an Ethos-U55, and Vela's table of layers."""
    from executorch.backends.arm.arm_vela import vela_compile

    spec = lowering.compile_spec(parse_target(f"ethos-u55-{macs}"))
    with tempfile.TemporaryDirectory(dir=spaceless_directory()) as folder:
        flags = [*spec.compiler_flags, "--verbose-performance"]
        result = vela_compile(tosa, flags, intermediate_path=folder)
        (table,) = Path(folder, "output").glob("*_per-layer.csv")
        return bytes(result.processed_bytes), table.read_bytes()


@contextmanager
def captured_graphs() -> Iterator[list[bytes]]:
    """The TOSA graphs that ExecuTorch hands to Vela while the block runs."""
    from executorch.backends.arm.ethosu import backend

    graphs: list[bytes] = []
    original = backend.vela_compile

    def recording(tosa: bytes, *arguments: Any, **options: Any) -> Any:
        graphs.append(bytes(tosa))
        return original(tosa, *arguments, **options)

    backend.vela_compile = recording
    try:
        yield graphs
    finally:
        backend.vela_compile = original


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """Random inputs of a model."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    if case.quantize == "none":
        return tuple(
            torch.randint(-(1 << 14), 1 << 14, shape, generator=generator, dtype=torch.int32)
            for shape in case.shapes
        )
    return tuple(2 * torch.randn(shape, generator=generator) for shape in case.shapes)


def tosa_graphs(case: Case) -> list[bytes]:
    """The TOSA graphs of a model's delegates, in the order in which ExecuTorch compiles them."""
    import torch

    torch.manual_seed(7)
    example = inputs(case, 0)
    spec = lowering.compile_spec(parse_target(f"ethos-u55-{_LOWERED_FOR}"))
    program = lowering.export(case.make(torch).eval(), example)
    if case.quantize != "none":
        prepared = lowering.prepare(program, spec, case.quantize)
        for seed in range(_CALIBRATION_SAMPLES):
            prepared(*inputs(case, seed))
        program = lowering.export(lowering.convert(prepared), example)
    with captured_graphs() as graphs:
        lowering.lower(program, spec)
    return graphs


def main() -> None:
    """Lower the group that the command line names."""
    folder, group = Path(sys.argv[1]), sys.argv[2]
    graphs = (
        {name: [make()] for name, make in GRAPHS.items()}
        if group == NUMERIC
        else {name: tosa_graphs(case) for name, case in GROUPS[group].items()}
    )
    for name, found in graphs.items():
        place = folder / name
        place.mkdir(parents=True)
        for number, tosa in enumerate(found):
            (place / f"{number}.tosa").write_bytes(tosa)
            for macs in MACS:
                payload, table = compile_for(macs, tosa)
                (place / f"{number}-{macs}.bin").write_bytes(payload)
                (place / f"{number}-{macs}.csv").write_bytes(table)


if __name__ == "__main__":
    main()
