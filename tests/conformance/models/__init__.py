"""Small PyTorch models that between them reach every kind of NPU operation, in groups.

Lowering costs a second or two per model and ten per process, so related operators share a model with many outputs.
"""

from collections.abc import Mapping

from tests.conformance.models.case import Case
from tests.conformance.models.convolutions import CONVOLUTIONS, WEIGHTS
from tests.conformance.models.elementwise import ELEMENTWISE, LOGIC
from tests.conformance.models.movement import INDEXED, MOVEMENT, RESIZE
from tests.conformance.models.networks import CONTROL, NETWORKS, NORMALISATION
from tests.conformance.models.pools import POOLS

GROUPS: Mapping[str, Mapping[str, Case]] = {
    "convolutions": CONVOLUTIONS,
    "weights": WEIGHTS,
    "pools": POOLS,
    "elementwise": ELEMENTWISE,
    "logic": LOGIC,
    "movement": MOVEMENT,
    "resize": RESIZE,
    "indexed": INDEXED,
    "normalisation": NORMALISATION,
    "networks": NETWORKS,
    "control": CONTROL,
}
