"""The page of a sweep of several models, and a browser that reaches no network."""

import pytest

from tests.integration.sweep_page import sweeps


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> sweeps.Sweep:
    """Some 250 cells: records of runs among them, some refused, some with figures missing."""
    return sweeps.made(sweeps.rows(models=8), tmp_path_factory.mktemp("sweep"))
