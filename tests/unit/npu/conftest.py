"""NPUs to start jobs on."""

import pytest

from tests.unit.npu.window import Bench, adding, copying


@pytest.fixture
def bench() -> Bench:
    """An Ethos-U55 that adds."""
    return adding()


@pytest.fixture
def u85() -> Bench:
    """An Ethos-U85 that copies."""
    return copying("ethos-u85", 256)
