"""The firmware's marks: what the firmware has and calls against what the host looks for."""

import re

from ethosu_sdk.base import resources
from ethosu_sdk.program import protocol

FIRMWARE = resources.directory("firmware")
OF_THE_BOARD = {"interrupt", "clock"}  # in its vector table


def text(name: str) -> str:
    return (FIRMWARE / name).read_text(encoding="utf-8")


def test_both_sides_know_the_same_marks() -> None:
    declared = re.findall(r'void mark_(\w+)\(\) __asm__\("(\w+)"\)', text("hal/marks.hpp"))
    assert all(symbol == protocol.MARK_PREFIX + name for name, symbol in declared)
    assert {name for name, _ in declared} == protocol.MARKS.keys() - OF_THE_BOARD
    entries = re.findall(
        rf'void \w+_entry\(\) __asm__\("{protocol.MARK_PREFIX}(\w+)"\)', text("board/common/board.hpp")
    )
    assert set(entries) == OF_THE_BOARD
    listed = re.findall(r"\.irp name, (.*)", text("board/common/marks.S"))
    assert [name for row in listed for name in row.split(", ")] == [
        *(name for name, _ in declared),
        *sorted(OF_THE_BOARD, reverse=True),
    ]


def test_every_mark_is_called() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("app", "runtime", "npu", "board/common")
        for path in (FIRMWARE / folder).glob("*.cpp")
    )
    for name in protocol.MARKS.keys() - OF_THE_BOARD:
        assert f"hal::mark_{name}();" in sources, name
    assert "= clock_entry;" in sources
    assert "= npu_entry;" in sources
