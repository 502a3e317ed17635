"""The independent chain: what a `.pte` must compute, bit for bit.

ExecuTorch's own C++ runtime executes the program and its CPU operators; every delegate is executed by the
TOSA reference model on the TOSA flatbuffer that Vela compiled. A delegate finds its flatbuffer by the SHA-256
of its payload, so neither the order of delegates nor a file's name is trusted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ethosu_sdk.compile.compile_facts import CompileOutput
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.simulate import host_runtime
from tests.oracles.tosa import OracleError, TosaModel

Array = NDArray[Any]


def tosa_by_payload(output: CompileOutput) -> dict[str, bytes]:
    """SHA-256 of each delegate's payload → the TOSA flatbuffer that it was compiled from."""
    folder = output.pte.parent
    return {row.payload_sha256: (folder / row.files.tosa).read_bytes() for row in output.delegates}


def execute_delegate(
    call: host_runtime.DelegateCall, tosa: Mapping[str, bytes], model: TosaModel
) -> list[Array]:
    """One delegate call on the TOSA reference model.

    The payload, the TOSA graph and the program must agree on the size of every input and output. Raises
    OracleError when they do not.
    """
    if call.payload_sha256 not in tosa:
        raise OracleError(f"no TOSA flatbuffer belongs to delegate {call.index}")
    blocks = vela_blocks.parse(call.payload)
    outputs = model.run(tosa[call.payload_sha256], call.inputs)
    sizes = {
        "inputs": ([slot.nbytes for slot in blocks.inputs], [array.nbytes for array in call.inputs]),
        "outputs": ([slot.nbytes for slot in blocks.outputs], [array.nbytes for array in outputs]),
    }
    for what, (vela, given) in sizes.items():
        if vela != given:
            raise OracleError(f"the {what} of delegate {call.index} have {given} bytes; Vela's have {vela}")
    for array, info in zip(outputs, call.outputs, strict=True):
        if array.nbytes != info.nbytes or array.dtype != info.dtype:
            raise OracleError(f"delegate {call.index} gives {array.dtype} {array.shape} for {info}")
    return outputs


@contextmanager
def open_chain(
    runner: Path, pte: Path, tosa: Mapping[str, bytes], model: TosaModel
) -> Iterator[host_runtime.HostRuntime]:
    """The chain for the `.pte`, loaded once; ``.run(inputs)`` gives the expected outputs."""
    with host_runtime.open_pte(runner, pte, lambda call: execute_delegate(call, tosa, model)) as runtime:
        yield runtime


def expected_outputs(
    runner: Path, output: CompileOutput, inputs: Sequence[Array], model: TosaModel
) -> list[Array]:
    """The outputs that the compiled program `output` must give for `inputs` (logical shapes, model order)."""
    with open_chain(runner, output.pte, tosa_by_payload(output), model) as chain:
        return chain.run(inputs)
