"""Of the boards, Corstone-320 alone."""

import importlib.metadata

import pytest

from tests.integration.qemu.conftest import Board, board_called

BOARD = "corstone-320"


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest) -> Board:
    return board_called(BOARD, request)


def needs_arms_runner() -> None:
    try:
        importlib.metadata.distribution("mlia-ethos-u")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("mlia-ethos-u is not installed: scripts/setup does that")
