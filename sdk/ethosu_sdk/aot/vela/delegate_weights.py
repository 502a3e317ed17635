"""Checks that Vela encoded the weights of each layer for all of its channels.

Vela 5.1.0 can take another axis for them without a word
(:mod:`ethosu_sdk.aot.repairs.miscounted_channels` avoids the known way):
channels would be computed without weights, or weights read that belong to nothing.
"""

from __future__ import annotations

from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.vela import debug_database
from ethosu_sdk.aot.vela.delegate_outputs import place
from ethosu_sdk.errors import InputError

_HINT = (
    "combine its result with others in another way, such as after an activation, or keep the operator on the CPU; "
    "--no-delegate keeps every operator on the CPU"
)


def check(delegate: DelegateFacts, debug_xml: bytes) -> None:
    """InputError that names the layer's place in the model when its weights are for other channels."""
    wrong = debug_database.misjudged_channels(debug_xml)
    for operation in delegate.operations:
        for offset in operation.offsets:
            if offset in wrong:
                channels, encoded = wrong[offset]
                raise InputError(
                    f"Vela encoded the weights of a layer in delegate {delegate.index} for {encoded} output "
                    f"channels instead of its {channels}: results would be wrong. It is the {operation.operator} "
                    f"'{operation.name}', {place(operation.source)}",
                    _HINT,
                )
