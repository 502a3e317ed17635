"""What `inspect --system` finds in streams with planted faults. The words of the board are those of Arm's driver."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.analysis import stream_findings
from ethosu_sdk.analysis.stream_findings import Finding
from ethosu_sdk.base import board_profiles
from ethosu_sdk.npu.stream import registers
from ethosu_sdk.program import cop1, pte
from ethosu_sdk.records.run import MemoryUse
from tests.integration.cli import sdk_ok
from tests.places import GOLDEN_PTE
from tests.tables import each

pytestmark = pytest.mark.core
_BOARD = "alif-e7-he"  # which has an Ethos-U55 of 128 MACs


def _actions(name: str) -> bytearray:
    (delegate,) = pte.read(GOLDEN_PTE / f"{name}.pte").delegates
    assert delegate.vela is not None
    return bytearray(delegate.vela.command_data)


def _found(data: bytearray) -> list[Finding]:
    profile = board_profiles.find_profile(_BOARD)
    return list(stream_findings.program_findings(cop1.parse(bytes(data)), profile))


def _set(data: bytearray, name: str, change: Callable[[int, int], tuple[int, int]]) -> None:
    """Change the first command `name`: its two words, of which the second may be the next command's."""
    (delegate,) = cop1.parse(bytes(data)).delegates
    assert delegate.vela is not None
    stream = delegate.vela.command_stream
    place = len(data) - len(stream)
    row = next(row for row in registers.commands(stream, "u55") if row.type.name == name)
    first, second = struct.unpack_from("<II", data, place + row.offset)
    struct.pack_into("<II", data, place + row.offset, *change(first, second))


def test_a_stream_for_the_board_has_no_findings() -> None:
    assert _found(_actions("add_u55")) == []


@each(
    "place, word, shown",
    (
        pytest.param(8, 0x3008, "NPU config mismatch. npu.macs_per_cc=7, optimizer.macs_per_cc=8", id="macs"),
        pytest.param(8, 0x1000_3008, "NPU config mismatch. npu.product=0, optimizer.product=1", id="product"),
        pytest.param(12, 0x2000_0000, "NPU arch mismatch. npu.arch=1.0.6, optimizer.arch=2.0.0", id="major"),
        pytest.param(12, 0x1010_0000, "NPU arch mismatch. npu.arch=1.0.6, optimizer.arch=1.1.0", id="minor"),
    ),
)
def test_words_of_another_npu(place: int, word: int, shown: str) -> None:
    data = _actions("add_u55")
    struct.pack_into("<I", data, place, word)
    (found,) = _found(data)
    assert found.shown.startswith(shown)
    assert "ethos-u55-128" in found.way_out or "version of Vela" in found.way_out


def test_an_older_patch_of_the_architecture_is_fine() -> None:
    data = _actions("add_u55")
    struct.pack_into("<I", data, 12, 0x1000_0000)
    assert _found(data) == []


def test_an_address_that_is_not_aligned() -> None:
    data = _actions("conv_u65_int8")
    _set(data, "SET_WEIGHT_BASE", lambda first, second: (first, second + 4))
    (delegate,) = cop1.parse(bytes(data)).delegates
    assert delegate.vela is not None
    (found,) = stream_findings.address_findings(delegate.vela)
    assert "weights at 0x" in found.problem


def test_a_region_that_no_runtime_sets() -> None:
    data = _actions("add_u55")
    _set(data, "SET_IFM_REGION", lambda first, second: (first & 0xFFFF | 4 << 16, second))
    (found,) = _found(data)
    assert found.problem.endswith("fast scratch: 4")


def test_one_byte_too_many() -> None:
    def rows(size: int) -> list[MemoryUse]:
        one = MemoryUse(memory="SRAM", role="model", used_bytes=600, size_bytes=size)
        other = MemoryUse(memory="SRAM", role="scratch", used_bytes=400, size_bytes=size)
        return [one, other, MemoryUse(memory="FLASH", role="code", used_bytes=1 << 40)]

    assert list(stream_findings.memory_findings(rows(1000), "x")) == []
    (found,) = stream_findings.memory_findings(rows(999), "x")
    assert found.problem == "SRAM of x has 999 bytes, and model 600 + scratch 400 = 1,000 would lie there"


def test_an_operator_without_a_kernel() -> None:
    (found,) = stream_findings.operator_findings(["aten::b.out", "aten::a.out"], ["aten::a.out"])
    assert "aten::b.out" in found.problem
    assert "aten::a.out" not in found.problem


def test_inspect_says_it(tmp_path: Path) -> None:
    program = GOLDEN_PTE / "add_u55.pte"
    shown = sdk_ok("inspect", program, "--system", "ek-ra8p1", cwd=tmp_path).out
    assert "npu.macs_per_cc=8, optimizer.macs_per_cc=7; Invoke failed" in shown
    shown = sdk_ok("inspect", program, "--system", _BOARD, cwd=tmp_path).out
    assert f"on {_BOARD}: nothing that would fail" in shown
