"""Of the boards, Corstone-320 alone."""

from __future__ import annotations

import pytest

from tests.integration.qemu.conftest import Board, board_called

BOARD = "corstone-320"


@pytest.fixture(scope="session")
def board(request: pytest.FixtureRequest) -> Board:
    return board_called(BOARD, request)
