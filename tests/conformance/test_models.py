"""Every model of the corpus: the NPU model gives the TOSA reference model's bytes.

The quick set runs each model on one configuration per profile. With ETHOSU_SDK_CONFORMANCE=full, as
scripts/npu-conformance sets it, each runs on all configurations that have its operators.
"""

import pytest

from tests.conformance.comparison import differing_elements
from tests.conformance.conftest import Corpus
from tests.conformance.selection import FULL, Pair, pairs, parameters
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("pair", parameters(pairs(full=FULL)))
def test_outputs_equal_the_reference(corpus: Corpus, tosa: TosaModel, pair: Pair) -> None:
    delegates = corpus(pair)
    assert delegates, "nothing of the model was delegated"
    for delegate in delegates:
        differing, total = differing_elements(delegate.payload, delegate.tosa, tosa, pair.int32_range)
        assert differing == 0, f"{differing} of {total} elements differ"
