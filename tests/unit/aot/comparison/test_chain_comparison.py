"""The chain's comparison where rounding is no excuse."""

import numpy as np
import pytest

from ethosu_sdk.aot.comparison.chain.comparison import Trials, within_rounding

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("candidate", [[np.nan, 1.0, 2.0], [0.9, 1.0, 2.0]])
def test_values_that_the_graph_itself_loses_are_a_difference(candidate: list[float]) -> None:
    import torch

    def rows(values: list[float]) -> list[tuple[torch.Tensor]]:
        return [(torch.tensor(values),)]

    base = rows([np.nan, 1.0, 2.0])
    _, found = within_rounding(
        rows([0.0, 1.0, 2.0]), rows(candidate), lambda: Trials(base, [base, rows([np.nan, 1.0, 2.000001])])
    )
    assert found is not None
    assert "1 element not finite, but finite in the model" in found.text
