"""The check that no test leaves anything behind."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.qemu.firmware import traces


@pytest.fixture(scope="package")
def frozen_garbage() -> Iterator[None]:
    """Leave what other tests' modules keep alive out of collections, each of which would take a second otherwise."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_is_left(frozen_garbage: None, scenarios: Path, tmp_path: Path) -> Iterator[None]:
    gc.collect()  # what another test left behind must not go meanwhile
    before = traces.open_resources()
    yield
    assert traces.qemu_processes(scenarios) == []
    gc.collect()  # an exception that a test looked at is in a cycle with its frame, and that holds the board
    assert traces.open_resources() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"uart.log", "other.log"}
