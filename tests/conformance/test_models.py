"""Every model of the corpus, on every Ethos-U55: the NPU model gives the TOSA reference model's bytes."""

from __future__ import annotations

import pytest

from tests.conformance.comparison import differing_elements
from tests.conformance.conftest import Corpus
from tests.conformance.lower import MACS
from tests.conformance.models import GROUPS
from tests.conformance.tosa_graphs import GRAPHS, NUMERIC
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

CASES = [
    pytest.param(group, model, id=f"{group}-{model}")
    for group, models in {**GROUPS, NUMERIC: GRAPHS}.items()
    for model in models
]


@pytest.mark.parametrize("macs", MACS)
@pytest.mark.parametrize(("group", "model"), CASES)
def test_outputs_equal_the_reference(
    corpus: Corpus, tosa: TosaModel, group: str, model: str, macs: int
) -> None:
    delegates = corpus(group, model)
    assert delegates, "nothing of the model was delegated"
    for delegate in delegates:
        differing, total = differing_elements(delegate.payloads[macs], delegate.tosa, tosa)
        assert differing == 0, f"{differing} of {total} elements differ"
