"""Checks that Vela gave a delegate all outputs of its graph, whole weights and its look-up tables. Vela 5.1.0 can
lose them without a word, and ExecuTorch packs what it is given. Rewrites avoid the known ways
(:mod:`ethosu_sdk.compile.rewrite.table`)."""

from __future__ import annotations

from collections import Counter
from math import prod

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import vela_database
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.npu import hazards, vela_blocks
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Delegate, Operation

_OUTPUTS_HINT = (
    "let the model return the tensor in another form, such as multiplied by 1.0, or keep the operator on the CPU; "
    "--no-delegate keeps every operator on the CPU"
)
_WEIGHTS_HINT = (
    "combine its result with others in another way, such as after an activation, or keep the operator on the CPU; "
    "--no-delegate keeps every operator on the CPU"
)
_TABLES_HINT = (
    "apply the activation before the axes are permuted, or compile for a target that reserves memory for tables, "
    "such as ethos-u55-128; --no-delegate keeps every operator on the CPU"
)


def check_outputs(index: int, payload: bytes, capture: VelaCapture, finder: SourceFinder) -> None:
    """InputError that names the lost tensors' places in the model when `payload` lacks outputs of its graph."""
    wanted = tosa_graph.graph_outputs(capture.tosa)
    sizes = [slot.nbytes // slot.element_bytes for slot in vela_blocks.parse(payload).outputs]
    if [prod(tensor.shape) for tensor in wanted] == sizes:
        return
    lost = Counter(prod(tensor.shape) for tensor in wanted) - Counter(sizes)
    suspects = [tensor for tensor in wanted if prod(tensor.shape) in lost] or wanted
    places = "; ".join(
        f"{list(tensor.shape)} {made_at(finder.find(capture.nodes.get(tensor.name, {})))}"
        for tensor in suspects
    )
    raise InputError(
        f"Vela compiled delegate {index} with {len(sizes)} of its {len(wanted)} outputs, or with other outputs: it "
        f"lost a tensor that the delegate both returns and uses. It is {'one of ' * (len(suspects) > 1)}{places}",
        _OUTPUTS_HINT,
    )


def check_call(
    index: int, payload: bytes, capture: VelaCapture, finder: SourceFinder, arguments: int | None
) -> None:
    """InputError when the program calls the delegate with another number of tensors than its commands know."""
    blocks = vela_blocks.parse(payload)
    known = len(blocks.inputs) + len(blocks.outputs)
    if arguments in (None, known):
        return
    made = tosa_graph.graph_outputs(capture.tosa)
    places = "; ".join(made_at(finder.find(capture.nodes.get(tensor.name, {}))) for tensor in made)
    raise InputError(
        f"the program passes {arguments} tensors to delegate {index}, but its commands use {known}: ExecuTorch "
        f"found that an input is unused and still passes it. The delegate's result is {places}",
        "create constants from numbers instead of a tensor's shape (torch.full instead of torch.ones_like); "
        "--no-delegate keeps every operator on the CPU",
    )


def made_at(source: SourceLine | None) -> str:
    return f"made at {'an unknown place' if source is None else source.words}"


def check_weights(delegate: Delegate, debug_xml: bytes) -> None:
    """InputError that names the layer's place in the model when its weights are for other channels."""
    wrong = vela_database.misjudged_channels(debug_xml)
    for operation in delegate.operations:
        for offset in operation.offsets:
            if offset in wrong:
                (channels, encoded), vela = wrong[offset], operation.vela
                raise InputError(
                    f"Vela encoded the weights of a layer in delegate {delegate.index} for {encoded} output "
                    f"channels instead of its {channels}: results would be wrong. It is the {vela.operator} "
                    f"'{vela.name or ''}', {made_at(operation.source)}",
                    _WEIGHTS_HINT,
                )


def check_tables(delegate: Delegate, payload: bytes) -> None:
    """InputError that names the operation's place in the model when it would not find its look-up table."""
    blocks = vela_blocks.parse(payload)
    config = NpuConfig.from_word(blocks.config_word)
    found = hazards.table_hazards(bytes(blocks.command_stream), config)
    if not found:
        return
    # Vela gives the end of each operation.
    behind = [row for row in delegate.operations if row.offsets and max(row.offsets) >= found[0].offset]
    operation = min(behind, key=lambda row: max(row.offsets), default=None)
    where = (
        "" if operation is None else f". It is that of the {_name(operation)}, {_place(delegate, operation)}"
    )
    raise InputError(
        f"Vela loses a look-up table of delegate {delegate.index}, and results on {config.npu}-{config.macs} would "
        f"be wrong: {found[0].describe()}{where}",
        _TABLES_HINT,
    )


def _place(delegate: Delegate, operation: Operation) -> str:
    """Where the operation comes from. ExecuTorch 1.5.1 notes no origin for a TABLE: then, what runs next to it."""
    rows = delegate.operations
    at = rows.index(operation)
    known = [index for index, row in enumerate(rows) if row.source is not None]
    if operation.source is not None or not known:
        return made_at(operation.source)
    nearest = rows[min(known, key=lambda index: abs(index - at))]
    return f"near the {_name(nearest)}, {made_at(nearest.source)}"


def _name(operation: Operation) -> str:
    vela, tosa = operation.vela, operation.tosa
    if tosa is None:
        return f"{vela.operator} '{vela.name or ''}'"
    return f"{tosa.operator} '{vela.name or tosa.tensor or ''}'"
