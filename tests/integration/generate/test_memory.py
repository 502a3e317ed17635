"""A decoder that does not fit its memory mode is refused with the arithmetic; what the refusal offers holds."""

import re
from pathlib import Path

import pytest

from ethosu_sdk.program import pte
from tests.integration.cli import sdk, sdk_ok
from tests.records import printed, read

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

MODEL = Path(__file__).with_name("wide_decoder.py")
SRAM_BYTES = {"corstone-300": 2 << 20, "corstone-320": 4 << 20}


def test_a_decoder_too_large_for_its_memory_mode_is_refused(tmp_path: Path) -> None:
    words = ("compile", MODEL, "--target", "ethos-u85-256", "--memory-mode", "Sram_Only", "-o", ".")
    sdk_ok(*words, cwd=tmp_path, timeout_s=900)
    program = tmp_path / "wide_decoder.pte"
    given = ("generate", program.name, "--tokens", "5,17,900", "--max-tokens", "4", "-o", "out")
    refused = sdk(*given, cwd=tmp_path)
    assert refused.code == 5
    said = " ".join(refused.err.split())
    model, scratch, total, size, excess = (
        int(text.replace(",", ""))
        for text in re.search(  # type: ignore[union-attr]
            r"error: the model does not fit SRAM of corstone-300 in memory mode Sram_Only: model ([\d,]+) \+ scratch "
            r"([\d,]+)(?: \+ alignment \d+)? = ([\d,]+) bytes, but it has ([\d,]+) \(([\d,]+) too many\)",
            said,
        ).groups()
    )
    blocks = [row.vela for row in pte.read(program).plan("forward").delegates]
    needed = max(row.scratch_bytes for row in blocks if row is not None)
    assert (model, size) == (program.stat().st_size, SRAM_BYTES["corstone-300"])
    assert needed <= scratch < needed + 16
    assert 0 <= total - model - scratch < 16
    assert excess == total - size > 0
    assert "--optimise=Size" not in said, "no schedule makes the tables of tokens smaller"
    assert not list((tmp_path / "out").glob("*.json"))

    # What it offers holds.
    assert f"--memory-mode Shared_Sram, which takes {scratch:,} of the 2,097,152 bytes of SRAM" in said
    assert "--board corstone-320, whose SRAM has 4,194,304 bytes" in said
    assert sdk("build", program.name, "--board", "corstone-320", "-o", "larger", cwd=tmp_path).code == 0
    regions = read(tmp_path / "larger" / "build.json")["memory"]["regions"]
    sram = next(row for row in regions if row["name"] == "SRAM")
    assert size < sram["used_bytes"] == total <= sram["size_bytes"] == SRAM_BYTES["corstone-320"]
    assert "--allow-spill" in said
    spilled = printed(sdk(*given, "--allow-spill", "--json", cwd=tmp_path))
    on_host = printed(sdk(*given, "--simulator", "host", "--json", cwd=tmp_path))
    assert spilled["tokens"] == on_host["tokens"]
    assert len(set(spilled["tokens"])) > 1
