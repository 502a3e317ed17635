"""The cells that continuous integration fills: 60 models, spread over the families, each on one target."""

from tests.meaning import grammar
from tests.meaning.cells import TARGETS
from tests.meaning.grammar import Model

COUNTS = {
    "writes": 14,
    "state": 14,
    "caches": 7,
    "aliases": 6,
    "shapes": 5,
    "outputs": 4,
    "dtypes": 4,
    "branches": 2,
    "operators": 1,
    "layers": 1,
    "blocks": 2,
}
_SEED = 7


def cells() -> list[tuple[Model, str]]:
    """The models with their targets."""
    models = grammar.models(len(grammar.idioms()), _SEED)
    chosen = [
        model
        for family, count in COUNTS.items()
        for model in [row for row in models if row.family == family][:count]
    ]
    return [(model, TARGETS[index % len(TARGETS)]) for index, model in enumerate(chosen)]
