"""Child process: lowers models, has Vela compile them, and leaves the results behind.

Usage: python -m tests.conformance.lower FOLDER GROUP/MODEL/TARGET... It is a process of its own because the tools
print, warn and may end it, and because a test that finds everything in the cache needs none of them.

ExecuTorch knows two profiles of operators: the TOSA graphs of Ethos-U55 and U65 are the same, those of U85 differ.
So a model is lowered at most twice: the folder GROUP/MODEL gets the TOSA graph ``u55-N.tosa`` of each delegate N, and
then ``u55.done``. For each target it gets Vela's payload ``u55-N.TARGET.bin`` and table of layers
``u55-N.TARGET.csv``, and then ``TARGET.done``. Groups that another process has locked are left to it.
"""

import fcntl
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ethosu_sdk.base import filesystem
from ethosu_sdk.compile import acceleration, lowering, quantizing
from ethosu_sdk.compile.vela_capture import spaceless_directory
from tests.conformance.models import GROUPS
from tests.conformance.models.case import BRANCHES, Case, Integers, Shape
from tests.conformance.selection import PROFILES, Pair, profile_of
from tests.conformance.targets import executorch_target
from tests.conformance.tosa_operators import GRAPHS, NUMERIC

_CALIBRATION_SAMPLES = 4
_AMPLITUDE = 4.0
_OFFSET = 0.5  # without it the mean of a whole tensor would have a range of almost nothing


class Compiled(NamedTuple):
    """What Vela makes of a TOSA graph: the delegate's payload, the table of layers, and a debug database if asked."""

    payload: bytes
    layers: bytes
    debug_xml: bytes


def compile_for(target: str, tosa: bytes, extra_flags: Sequence[str] = ()) -> Compiled:
    """Compile a TOSA graph for a target."""
    with warnings.catch_warnings(), acceleration.quick_imports():  # warnings where a test calls this
        warnings.simplefilter("ignore")
        from executorch.backends.arm.arm_vela import vela_compile

        spec = lowering.compile_spec(executorch_target(target))
    with tempfile.TemporaryDirectory(dir=spaceless_directory()) as folder:
        flags = [*spec.compiler_flags, *extra_flags, "--verbose-performance"]
        result = vela_compile(tosa, flags, intermediate_path=folder)
        (table,) = Path(folder, "output").glob("*_per-layer.csv")
        debug_xml = b"".join(path.read_bytes() for path in Path(folder, "output").glob("*_debug.xml"))
        return Compiled(bytes(result.processed_bytes), table.read_bytes(), debug_xml)


@contextmanager
def captured_graphs() -> Iterator[list[bytes]]:
    """The TOSA graphs that ExecuTorch would hand to Vela while the block runs. Vela itself is left out."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend

    graphs: list[bytes] = []
    original = backend.vela_compile

    def recording(tosa: bytes, *arguments: Any, **options: Any) -> Any:
        graphs.append(bytes(tosa))
        return VelaCompileResult(bytes(16))

    backend.vela_compile = recording
    try:
        yield graphs
    finally:
        backend.vela_compile = original


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """Random inputs of a model: uniform, as those that the comparison uses, so that few results saturate."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def centred(shape: Shape) -> Any:
        return 2 * torch.rand(shape, generator=generator) - 1

    return tuple(
        torch.randint(
            kind.low, kind.high + 1, kind.shape, generator=generator, dtype=getattr(torch, kind.dtype)
        )
        if isinstance(kind, Integers)
        else _AMPLITUDE * centred(kind) + _OFFSET * centred(())
        for kind in case.inputs
    )


def quantized(program: Any, case: Case, spec: Any) -> Any:
    """The quantised module of a float program."""
    samples = [inputs(case, seed) for seed in range(_CALIBRATION_SAMPLES)]
    if case.quantize == BRANCHES:
        # Each sign of the sum takes another branch: all of them see calibration samples.
        samples += [tuple(sign * value for value in samples[0]) for sign in (-1, 0)]
        return quantizing.quantize_branches(program, spec, "int8", samples)
    prepared = quantizing.prepare_module(program, spec, case.quantize)
    for sample in samples:
        prepared(*sample)
    return quantizing.convert_module(prepared)


def tosa_graphs(case: Case, target: str) -> list[bytes]:
    """The TOSA graphs of a model's delegates, in the order in which ExecuTorch compiles them."""
    import torch

    torch.manual_seed(7)
    example = inputs(case, 0)
    spec = lowering.compile_spec(executorch_target(target))
    with acceleration.accelerated(), captured_graphs() as graphs:
        program = lowering.export_program(case.make(torch).eval(), example)
        if case.quantize != "none":
            program = lowering.export_program(quantized(program, case, spec), example)
        lowering.lower_program(program, spec)
    return graphs


def compile_missing(place: Path, pair: Pair) -> None:
    """Compile the graphs in `place` for the target of `pair`, unless somebody has."""
    flags = () if pair.group == NUMERIC else GROUPS[pair.group][pair.model].flags
    for graph in sorted(place.glob(f"{profile_of(pair.target)}-*.tosa")):
        made = graph.with_suffix(f".{pair.target}.bin")
        if not made.is_file():
            compiled = compile_for(pair.target, graph.read_bytes(), flags)
            # The payload last: where it is, the table is too.
            filesystem.write_bytes(graph.with_suffix(f".{pair.target}.csv"), compiled.layers)
            filesystem.write_bytes(made, compiled.payload)


def make(folder: Path, pair: Pair) -> None:
    """Lower and compile a pair, as far as nobody has."""
    place, profile = filesystem.make_directory(folder / pair.group / pair.model), profile_of(pair.target)
    lowered = place / f"{profile}.done"
    if not lowered.is_file():
        graphs = (
            [GRAPHS[pair.model].make()]
            if pair.group == NUMERIC
            else tosa_graphs(GROUPS[pair.group][pair.model], PROFILES[profile])
        )
        for number, tosa in enumerate(graphs):
            (place / f"{profile}-{number}.tosa").write_bytes(tosa)
        lowered.touch()
    compile_missing(place, pair)
    (folder / pair.done).touch()


@acceleration.rare_collections()
def main() -> None:
    """Make what the command line names, but for groups that another process has. Only the first pair must succeed:
    the others are asked for again by their own tests."""
    import torch

    torch.set_num_threads(1)  # the models are small: more threads only wait for each other
    folder, pairs = Path(sys.argv[1]), [Pair(*word.split("/")) for word in sys.argv[2:]]
    for group in dict.fromkeys(pair.group for pair in pairs):
        filesystem.make_directory(folder / group)
        with (folder / group / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for pair in (row for row in pairs if row.group == group and not (folder / row.done).is_file()):
                try:
                    make(folder, pair)
                except Exception:
                    if pair == pairs[0]:
                        raise


if __name__ == "__main__":
    main()
