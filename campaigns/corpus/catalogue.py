"""All architectures of the corpus."""

import importlib

from campaigns.corpus import recipe

_FILES = ("classification", "image_models", "dense", "restoration", "sequences")


def _load() -> dict[str, recipe.Architecture]:
    for name in _FILES:
        importlib.import_module(f"campaigns.corpus.models.{name}")
    return dict(recipe.REGISTRY)


ARCHITECTURES = _load()
