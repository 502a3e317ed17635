"""Which board a program is built for, and what is refused."""

import pytest

from ethosu_sdk.errors import UsageError
from ethosu_sdk.firmware_build import choose_board


@pytest.mark.parametrize(
    ("npu", "wish", "simulator", "board"),
    [
        ("ethos-u55", None, None, "corstone-300"),
        ("ethos-u65", None, "fvp", "corstone-300"),
        ("ethos-u85", None, None, "corstone-320"),
        ("ethos-u85", None, "fvp", "corstone-320"),
        ("ethos-u85", None, "qemu", "corstone-300"),
        ("ethos-u85", "corstone-300", None, "corstone-300"),
        (None, None, None, "corstone-300"),
        (None, None, "qemu", "corstone-300"),
        (None, "corstone-320", "fvp", "corstone-320"),
        ("ethos-u85", "corstone-320", "qemu", "corstone-320"),
        (None, "corstone-320", "qemu", "corstone-320"),
    ],
)
def test_the_board(npu: str | None, wish: str | None, simulator: str | None, board: str) -> None:
    choice = choose_board(npu, wish, simulator)
    assert choice.board == board
    assert choice.reason
    assert bool(choice.notes) == (npu == "ethos-u85" and board == "corstone-300")


def test_the_reason_says_where_the_firmware_can_run() -> None:
    assert "qemu runs ethos-u85 on corstone-300 (--board corstone-300)" in choose_board("ethos-u85").reason
    assert choose_board("ethos-u55").reason == "the board of ethos-u55"
    (note,) = choose_board("ethos-u85", simulator="qemu").notes
    assert "exists on qemu alone" in note


@pytest.mark.parametrize(
    ("npu", "wish", "simulator", "message", "hint"),
    [
        ("ethos-u55", "corstone-320", None, "corstone-320 has no ethos-u55", "--board corstone-300"),
        ("ethos-u65", "corstone-320", "qemu", "corstone-320 has no ethos-u65", "--board corstone-300"),
        ("ethos-u85", "corstone-300", "fvp", "fvp cannot run corstone-300", "--board corstone-320"),
        ("ethos-u85", "corstone-300", "fvp", "fvp cannot run corstone-300", "--simulator qemu"),
        ("ethos-u55", "corstone-310", None, "corstone-310", "did you mean 'corstone-3"),
    ],
)
def test_what_cannot_be_is_a_usage_error_with_the_alternative(
    npu: str | None, wish: str, simulator: str | None, message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        choose_board(npu, wish, simulator)
    assert hint in caught.value.hint
