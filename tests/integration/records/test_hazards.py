"""Hazards of a command stream, told to whoever inspects or runs a program: the waits of a good one are taken away."""

import json
import struct
from pathlib import Path

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.stream import registers
from ethosu_sdk.program import pte
from tests.conftest import ZooPte
from tests.integration.cli import sdk, sdk_ok
from tests.records import read

pytestmark = [pytest.mark.torch]


def _without_waits(program: Path, target: Path) -> int:
    """Write `program` with every NPU_OP_DMA_WAIT made to wait for nothing; how many there were."""
    data = bytearray(program.read_bytes())
    count = 0
    for delegate in pte.read(program).plan("forward").delegates:
        assert delegate.vela is not None
        stream = bytes(delegate.vela.command_stream)
        start = data.index(stream)
        for command in registers.commands(stream, NpuConfig.from_word(delegate.vela.config_word).generation):
            if command.type.name == "OP_DMA_WAIT":
                (word,) = struct.unpack_from("<I", stream, command.offset)
                struct.pack_into(
                    "<I", data, start + command.offset, word | 0xF << 16
                )  # for more than 15 transfers
                count += 1
    target.write_bytes(data)
    return count


@pytest.mark.toolchain
@pytest.mark.qemu
def test_missing_waits_are_told(zoo_pte: ZooPte, tmp_path: Path) -> None:
    good, bad = zoo_pte("ds_cnn").pte, tmp_path / "bad.pte"
    assert _without_waits(good, bad) > 0
    clean = sdk("inspect", good, "--hazards", cwd=tmp_path)
    assert clean.code == 0
    assert "none: its waits and BLOCKDEP suffice" in clean.out
    shown = sdk("inspect", bad, "--hazards", "--json", cwd=tmp_path)
    delegates = json.loads(shown.out)["methods"][0]["delegates"]
    found = [sentence for row in delegates for sentence in row["vela"]["hazards"]]
    assert any(sentence.startswith("missing NPU_OP_DMA_WAIT: ") for sentence in found)
    ran = sdk_ok("run", bad, "-o", tmp_path / "ran", cwd=tmp_path)
    assert "hardware may compute something else" in " ".join(ran.err.split())
    notes = read(tmp_path / "ran" / "run.json")["notes"]
    assert any("missing NPU_OP_DMA_WAIT" in note for note in notes)
