"""Child process: compiles pairs and leaves ``NAME.pte`` and ``NAME.tosa`` behind.

Usage: python -m tests.integration.qemu.models.lower FOLDER NAME... The programs take and give integers and are
one delegate each, so that what the NPU gets and gives is what the program does. Beside them, ``NAME.json`` holds the
bytes of fast scratch memory that Vela planned, which no payload states.
"""

import json
import sys
from pathlib import Path
from typing import Any

from ethosu_sdk.compile import lowering, vela_capture
from tests.conformance import lower as conformance
from tests.conformance.models.case import Integers
from tests.integration.qemu.models.pairs import Pair, by_model


def quantized(pair: Pair) -> Any:
    """The exported program of a model, quantised."""
    import torch

    torch.manual_seed(7)
    example = conformance.inputs(pair.case, 0)
    program = lowering.export_program(pair.case.make(torch).eval(), example)
    if pair.case.quantize == "none":
        return program
    module = conformance.quantized(program, pair.case, lowering.compile_spec(pair.target))
    return lowering.export_program(module, example)


def integer_io(edge: Any, pair: Pair) -> Any:
    """`edge` without the operators that quantise its inputs and dequantise its outputs."""
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    if pair.case.quantize == "none":
        return edge
    floats = [index for index, kind in enumerate(pair.case.inputs) if not isinstance(kind, Integers)]
    outputs = range(len(edge.exported_program().graph_signature.user_outputs))
    return edge.transform([QuantizeInputs(edge, floats), QuantizeOutputs(edge, list(outputs))])


def main() -> None:
    """Compile the pairs that the command line names."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for pairs in by_model(names):
        program = quantized(pairs[0])
        for pair in pairs:
            with vela_capture.runs_captured() as captures:
                edge = lowering.lower_program(program, lowering.compile_spec(pair.target))
                data = bytes(lowering.to_executorch(integer_io(edge, pair)).buffer)
            (made,) = captures
            (folder / f"{pair.name}.pte").write_bytes(data)
            (folder / f"{pair.name}.tosa").write_bytes(made.tosa)
            facts = {"fast_scratch_bytes": made.scratch_fast_bytes}
            (folder / f"{pair.name}.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
