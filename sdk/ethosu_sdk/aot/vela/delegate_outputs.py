"""Checks that Vela gave a delegate all outputs of its TOSA graph.

Vela 5.1.0 can lose one without a word (:mod:`ethosu_sdk.aot.repairs.merged_transposes` avoids the known way), and
ExecuTorch packs what it is given: the program would read memory that the NPU never writes.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from ethosu_sdk import vela_blocks
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.aot.graph import tosa_operators
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.errors import InputError

_HINT = (
    "let the model return the tensor in another form, such as multiplied by 1.0, or keep the operator on the CPU; "
    "--no-delegate keeps every operator on the CPU"
)


def check(index: int, payload: bytes, capture: VelaCapture, finder: SourceFinder) -> None:
    """InputError that names the lost tensors' places in the model when `payload` lacks outputs of its graph."""
    wanted = tosa_operators.outputs(capture.tosa)
    sizes = [slot.nbytes // slot.element_bytes for slot in vela_blocks.parse(payload).outputs]
    if [prod(tensor.shape) for tensor in wanted] == sizes:
        return
    lost = Counter(prod(tensor.shape) for tensor in wanted) - Counter(sizes)
    suspects = [tensor for tensor in wanted if prod(tensor.shape) in lost] or wanted
    places = "; ".join(
        f"{list(tensor.shape)} {place(finder.find(capture.nodes.get(tensor.name, {})))}"
        for tensor in suspects
    )
    raise InputError(
        f"Vela compiled delegate {index} with {len(sizes)} of its {len(wanted)} outputs, or with other outputs: it "
        f"lost a tensor that the delegate both returns and uses. It is {'one of ' * (len(suspects) > 1)}{places}",
        _HINT,
    )


def check_call(
    index: int, payload: bytes, capture: VelaCapture, finder: SourceFinder, arguments: int | None
) -> None:
    """InputError when the program calls the delegate with another number of tensors than its commands know: one that
    it is given was found to be of no use (:mod:`ethosu_sdk.aot.repairs.shifted_arguments` avoids the known way)."""
    blocks = vela_blocks.parse(payload)
    known = len(blocks.inputs) + len(blocks.outputs)
    if arguments in (None, known):
        return
    made = tosa_operators.outputs(capture.tosa)
    places = "; ".join(place(finder.find(capture.nodes.get(tensor.name, {}))) for tensor in made)
    raise InputError(
        f"the program passes {arguments} tensors to delegate {index}, but its commands use {known}: ExecuTorch "
        f"found that an input is unused and still passes it. The delegate's result is {places}",
        "create constants from numbers instead of a tensor's shape (torch.full instead of torch.ones_like); "
        "--no-delegate keeps every operator on the CPU",
    )


def place(source: SourceLine | None) -> str:
    """Words for where a tensor is made."""
    return f"made at {'an unknown place' if source is None else source.words}"
