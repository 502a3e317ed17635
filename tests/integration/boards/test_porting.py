"""The guide to a board of one's own, command by command, on a machine for which the SDK has no firmware."""

from pathlib import Path

import pytest

from tests.integration import guide
from tests.integration.cli import assert_clear, sdk
from tests.own_qemu import VARIABLE
from tests.places import ROOT
from tests.records import valid

_PAGE = "porting.md"


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.qemu
def test_the_page_command_by_command(tmp_path: Path, own_qemu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board differs from the SDK's in memories, UART and NPU. A function of the pack replaces a common one."""
    monkeypatch.setenv(VARIABLE, str(own_qemu))
    (program, *words), *others = guide.commands(_PAGE)
    guide.execute(program, words, tmp_path)
    assert (tmp_path / "packs" / "ours" / "board.toml").is_file()
    guide.write_files(_PAGE, tmp_path)
    uart = (ROOT / "firmware" / "board" / "common" / "uart.cpp").read_text(encoding="utf-8")
    (tmp_path / "packs" / "ours" / "firmware" / "uart.cpp").write_text(f"// ours\n{uart}")
    monkeypatch.setenv("ETHOSU_SDK_BOARDS", str(tmp_path / "packs"))
    assert len(others) == 4
    for program, *words in others:
        guide.execute(program, words, tmp_path)
    run = valid(tmp_path / "build" / "run.json")
    assert (run["status"], run["board"], run["simulator"]["name"]) == ("pass", "ours", "qemu")
    assert {check["status"] for check in run["verdict"]["checks"]} == {"pass"}
    assert run["memory"]["hardware"] == "untested on hardware"
    linked = (tmp_path / "build" / "executor_runner.map").read_text(encoding="utf-8")
    assert "board/ours/CMakeFiles/ethosu_board.dir/uart.cpp.obj" in linked
    # The same firmware with the UART of another board says nothing that could pass for a run.
    pack = tmp_path / "packs" / "ours" / "board.toml"
    text = pack.read_text(encoding="utf-8")
    pack.write_text(text.replace("secure_base = 0x5930_3000", "secure_base = 0x5820_3000"), encoding="utf-8")
    wrong = sdk("run", "build/add.pte", "--board", "ours", "-o", "wrong", "--timeout", "20", cwd=tmp_path)
    assert_clear(wrong, 6)
