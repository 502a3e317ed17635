"""`check` names each planted fault with what the board would show and the way out, and nothing in what is right.

The words of the board are those of Arm's driver (ethosu_driver.c) and of ExecuTorch's runtime (error.h).
"""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from ethosu_sdk.analysis.check_command import check_program
from ethosu_sdk.analysis.options import CheckOptions
from ethosu_sdk.npu.stream import registers
from ethosu_sdk.program import pte
from ethosu_sdk.records.check import Check, Row
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE, ROOT
from tests.pte_files import golden
from tests.records import printed
from tests.tables import each
from tests.tflite_files import Model

pytestmark = pytest.mark.core
_CONFIG, _ID = 8, 12  # bytes from COP1 to the words


def _check(path: Path, board: str, **options: object) -> Check:
    return check_program(path, board, CheckOptions(**options))  # type: ignore[arg-type]


def _fault(found: Check) -> Row:
    """The one thing that fails, with all that has to be said of it."""
    (row,) = [row for row in found.checks if row.status == "fail"]
    assert found.status == "fail"
    assert row.shown
    assert row.way_out
    return row


def _cop1(data: bytearray) -> int:
    (place,) = [at for at in range(len(data)) if data[at : at + 4] == b"COP1"]
    return place


def _word(offset: int, word: int) -> Callable[[bytearray], None]:
    return lambda data: struct.pack_into("<I", data, _cop1(data) + offset, word)


def _command(name: str, first: int, second: int) -> Callable[[bytearray], None]:
    """Set these bits in the words of the first command `name` of the only delegate, or in the next command."""

    def planted(data: bytearray) -> None:
        (delegate,) = pte.parse(bytes(data)).delegates
        assert delegate.vela is not None
        stream = bytes(delegate.vela.command_stream)
        row = next(row for row in registers.commands(stream, "u55") if row.type.name == name)
        place = bytes(data).index(stream) + row.offset
        words = struct.unpack_from("<I", data, place)[0] | first
        struct.pack_into("<I", data, place, words)
        if second:
            struct.pack_into("<I", data, place + 4, struct.unpack_from("<I", data, place + 4)[0] + second)

    return planted


def _replaced(old: bytes, new: bytes) -> Callable[[bytearray], None]:
    def planted(data: bytearray) -> None:
        assert len(old) == len(new)
        assert old in data
        data[:] = data.replace(old, new)

    return planted


def _input_of(size: int) -> Callable[[bytearray], None]:
    """Make the last dimension of the delegate's first input `size`."""

    def planted(data: bytearray) -> None:
        (delegate,) = pte.parse(bytes(data)).delegates
        (block,) = [row for row in delegate.vela.blocks if row.name == "inputs"]  # type: ignore[union-attr]
        place = bytes(data).index(bytes(delegate.payload[block.offset : block.offset + block.length]))
        struct.pack_into("<i", data, place + 4 + 5 * 4, size)

    return planted


E7_HE, IMX, U85 = "alif-e7-he", "imx93", "alif-e8-hp-u85"
_STREAMS = (
    # program, board, what is planted, name of the check, what the board shows, way out
    ("add_u55", "ek-ra8p1", None, "npu", "npu.macs_per_cc=8, optimizer.macs_per_cc=7", "ethos-u55-256"),
    ("add_u55", "grove-vision-ai-v2", None, "npu", "macs_per_cc=6, optimizer.macs_per_cc=7", "ethos-u55-64"),
    ("add_u55", IMX, None, "npu", "npu.product=1, optimizer.product=0", "ethos-u65-256"),
    ("conv_u65_int8", "alif-e8-hp", None, "npu", "npu.product=0, optimizer.product=1", "ethos-u55-256"),
    ("add_u85_segment", "psoc-edge-e84", None, "npu", "npu.product=0, optimizer.product=2", "ethos-u55-128"),
    ("add_u55", E7_HE, _word(_CONFIG, 0x1817), "npu", "npu.cmd_stream_version=0, optimizer", "ethos-u55-128"),
    ("add_u55", E7_HE, _word(_CONFIG, 0x180C), "npu", "optimizer.macs_per_cc=12", "ethos-u55-128"),
    ("add_u55", E7_HE, _word(_ID, 0x2000_7000), "npu", "npu.arch=1.0.6, optimizer.arch=2.0.0", "Vela"),
    ("add_u55", E7_HE, _word(_ID, 0x1010_0000), "npu", "npu.arch=1.0.6, optimizer.arch=1.1.0", "Vela"),
    ("conv_u65_int8", IMX, _command("SET_WEIGHT_BASE", 0, 4), "addresses", "bus error", "compile again"),
    ("conv_u65_int8", IMX, _command("SET_SCALE_BASE", 0, 8), "addresses", "bus error", "compile again"),
    ("add_u55", E7_HE, _command("SET_IFM_REGION", 4 << 16, 0), "addresses", "Invoke failed", "io-regions"),
    ("add_u55", E7_HE, _command("OP_STOP", 0x3FF, 0), "commands", "Invoke failed", "compile"),
    ("add_u55", E7_HE, _command("OP_ELEMENTWISE", 0x3F << 16, 0), "commands", "Invoke failed", "compile"),
    ("softmax", E7_HE, _replaced(b"aten::_softmax", b"aten::_softmay"), "kernels", "0x14", "advise"),
)


@each(("name", "board", "plant", "check", "shown", "way_out"), _STREAMS)
def test_a_fault_of_the_program(
    tmp_path: Path,
    name: str,
    board: str,
    plant: Callable[[bytearray], None] | None,
    check: str,
    shown: str,
    way_out: str,
) -> None:
    data = bytearray(golden(name))
    if plant is not None:
        own = tmp_path / "right.pte"
        own.write_bytes(data)
        assert _check(own, board).status == "pass"
        plant(data)
    path = tmp_path / f"{name}.pte"
    path.write_bytes(data)
    row = _fault(_check(path, board))
    assert row.name == check
    assert shown in (row.shown or "")
    assert way_out in (row.way_out or "")


def test_a_backend_of_another_board(tmp_path: Path) -> None:
    data = bytearray(golden("add_u55"))
    _replaced(b"EthosUBackend", b"OtherBackends")(data)
    path = tmp_path / "other.pte"
    path.write_bytes(data)
    row = _fault(_check(path, E7_HE))
    assert "OtherBackends" in row.detail
    assert "0x20" in (row.shown or "")


PACK = """like = "grove-vision-ai-v2"
npus = ["ethos-u55-128"]
[memories]
{memories}
"""


def _pack(folder: Path, **memories: str) -> str:
    """A pack with these memories. Those of add_u55: model 2064, scratch 64, planned 64 and the method pool 688."""
    rows = {
        "FLASH": "size_bytes = 0x20_0810, model_offset = 0x20_0000",
        "SRAM": "size_bytes = 816",
    } | memories
    kinds = {"FLASH": "flash", "SRAM": "sram", "SRAM2": "sram"}
    texts = (f'{name} = {{ kind = "{kinds[name]}", {row} }}' for name, row in rows.items())
    others = 'SRAM2 = { kind = "sram", size_bytes = 0 }\n' if "SRAM2" not in memories else ""
    path = folder / "ours" / "board.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PACK.format(memories=others + "\n".join(texts)))
    return f"{path.parent}/"


def test_a_program_that_just_fits_does(tmp_path: Path) -> None:
    found = _check(GOLDEN_PTE / "add_u55.pte", _pack(tmp_path))
    assert found.status == "pass"
    details = [row.detail for row in found.checks if row.name == "memory"]
    assert details == [
        "FLASH: model 2,064 of 2,064 bytes, 0 free",
        "SRAM: scratch 64 + planned 64 + method pool 688 of 816 bytes, 0 free",
    ]


@each(
    ("memories", "check", "words"),
    (
        ({"SRAM": "size_bytes = 815"}, "memory", "SRAM of ours has 815 bytes"),
        ({"FLASH": "size_bytes = 0x20_080F, model_offset = 0x20_0000"}, "memory", "FLASH of ours has 2,063"),
        ({"FLASH": "size_bytes = 0x810, model_offset = 1"}, "memory", "FLASH of ours has 2,063"),
        ({"SRAM": "size_bytes = 816, npu = false"}, "reach", "the scratch would lie in SRAM"),
        ({"FLASH": "size_bytes = 2064, npu = false"}, "reach", "the model would lie in FLASH"),
    ),
)
def test_one_byte_too_many_and_memories_that_the_npu_does_not_reach(
    tmp_path: Path, memories: dict[str, str], check: str, words: str
) -> None:
    row = _fault(_check(GOLDEN_PTE / "add_u55.pte", _pack(tmp_path, **memories)))
    assert (row.name, words in row.detail) == (check, True), row.detail


def test_a_memory_mode_that_needs_more_sram(tmp_path: Path) -> None:
    row = _fault(_check(GOLDEN_PTE / "add_u55.pte", _pack(tmp_path), memory_mode="Sram_Only"))
    assert "model 2,064" in row.detail
    assert "memory mode" in (row.way_out or "")


@each(("pool", "needed"), (("method_pool", 64), ("temp_pool", 64)))
def test_a_pool_of_one_byte_less(tmp_path: Path, pool: str, needed: int) -> None:
    """Both pools of ExecuTorch's runner hold the 64 bytes of scratch and of planned memory at least."""
    path = GOLDEN_PTE / "add_u55.pte"
    assert _check(path, E7_HE, **{pool: needed}).status == "pass"
    row = _fault(_check(path, E7_HE, **{pool: needed - 1}))
    assert row.name == "pools"
    assert "0x21" in (row.shown or "")
    assert "64 bytes or more" in (row.way_out or "")


def test_a_program_of_another_build(tmp_path: Path) -> None:
    """It does not say what it was compiled for: all else is looked at."""
    data = bytearray(golden("add_u55"))
    _replaced(b"compile_flags", b"compile_flagz")(data)
    path = tmp_path / "other.pte"
    path.write_bytes(data)
    found = _check(path, E7_HE)
    assert found.status == "pass"
    assert {row.name for row in found.checks if row.status == "unknown"} == {"vela", "system"}
    assert "0x21" in (_fault(_check(path, E7_HE, temp_pool=63)).shown or "")


def test_the_vendors_pools_count(tmp_path: Path) -> None:
    board = _pack(tmp_path)
    pack = tmp_path / "ours" / "board.toml"
    pack.write_text(pack.read_text() + "[pools]\nexecutorch_temp = 63\n")
    assert "SCRATCH_TEMP" in _fault(_check(GOLDEN_PTE / "add_u55.pte", board)).detail


@each(
    ("address", "fits"),
    (
        (0x3A20_0000, True),
        (0x2A20_1000, True),
        (0x3AFF_F000, True),
        (0x3A1F_F000, False),
        (0x3A20_0010, False),
        (0x3AFF_F800, False),
        (0x3B00_0000, False),
        (0x3C20_0000, False),
        (0x0000_0000, False),
    ),
)
def test_where_a_program_may_lie_in_the_flash_of_we2(tmp_path: Path, address: int, fits: bool) -> None:
    """2 MiB are the firmware's, sectors have 4 KiB, and the 16 MiB appear at 0x2A000000 and 0x3A000000."""
    pack = tmp_path / "ours.toml"
    pack.write_text('like = "grove-vision-ai-v2"\nnpus = ["ethos-u55-128"]\n')
    found = _check(GOLDEN_PTE / "add_u55.pte", str(pack), address=hex(address))
    if fits:
        assert found.status == "pass"
        return
    row = _fault(found)
    assert row.name == "place"
    assert "0x23" in (row.shown or "")
    assert "0x3a200000" in (row.way_out or "")


def test_an_old_vela_and_missing_data(tmp_path: Path) -> None:
    path = tmp_path / "add_u55.pte"
    path.write_bytes(golden("add_u55"))
    record = json.loads((ROOT / "schemas/examples/valid/compile-add.json").read_text())
    record["model"] |= {"sha256": pte.read(path).sha256}
    (vela,) = [row for row in record["provenance"]["tools"] if row["name"] == "ethos-u-vela"]
    for version, passes in (("4.1.0", False), ("4.10.0", True), (vela["version"], True)):
        vela["version"] = version
        path.with_suffix(".compile.json").write_text(json.dumps(record))
        found = _check(path, E7_HE)
        assert (found.status == "pass") is passes
        if not passes:
            assert "Vela 4.1.0 writes outputs with other shapes" in _fault(found).detail
    split = tmp_path / "split.pte"
    split.write_bytes((ROOT / "tests/golden/ptd/split.pte").read_bytes())
    row = _fault(_check(split, E7_HE))
    assert row.name == "data files"
    assert "0x24" in (row.shown or "")


def test_programs_on_boards_with_their_npu_have_no_faults() -> None:
    for name, board in (
        ("add_u55", E7_HE),
        ("conv_u65_int8", IMX),
        ("add_u55", "psoc-edge-e84"),
        ("add_u85_segment", U85),
    ):
        found = _check(GOLDEN_PTE / f"{name}.pte", board)
        assert [row.detail for row in found.checks if row.status == "fail"] == []
        assert found.board.hardware == "untested on hardware"


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A convolution of a .tflite, compiled by Vela itself for Ethos-U55 with 64 MACs."""
    model = Model()
    x = model.input("x", (1, 8, 8, 4), "int8", 0.05, -3)
    weights = np.arange(16 * 9 * 4, dtype=np.int32).reshape(16, 3, 3, 4) % 251 - 125
    w = model.constant(weights.astype(np.int8), [0.01] * 16, axis=0)
    b = model.constant(np.zeros(16, np.int32), [0.0005] * 16, axis=0)
    y = model.tensor((1, 8, 8, 16), "int8", 0.1, 5)
    model.operator("CONV_2D", [x, w, b], y, padding="SAME", stride_w=1, stride_h=1)
    model.output(y, name="y")
    path = tmp_path / "conv.tflite"
    model.write(path)
    run = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
    vela = [sys.executable, "-c", run, str(path), "--accelerator-config", "ethos-u55-64"]
    subprocess.run([*vela, "--output-dir", str(tmp_path)], check=True, capture_output=True, timeout=120)
    return tmp_path / "conv_vela.tflite"


def test_what_vela_wrote_into_a_tflite(compiled: Path, tmp_path: Path) -> None:
    found = _check(compiled, "grove-vision-ai-v2")
    assert found.status == "pass"
    assert found.accelerators == ("ethos-u55-64",)
    details = [row.detail for row in found.checks if row.name == "memory"]
    assert f"FLASH: model {compiled.stat().st_size:,} of 14,680,064 bytes" in details[0]
    assert "SRAM: scratch 1,280 of" in details[1], "the IFM of 256 bytes and the OFM of 1,024"
    assert "npu.macs_per_cc=7, optimizer.macs_per_cc=6" in (
        _fault(_check(compiled, "psoc-edge-e84")).shown or ""
    )
    for name, content, words in (
        ("conv.tflite", (tmp_path / "conv.tflite").read_bytes(), "has no operator of Vela's"),
        ("cut_vela.tflite", compiled.read_bytes()[:-300], "cut_vela.tflite"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert_clear(sdk("check", path, "--board", "psoc-edge-e84", cwd=tmp_path), 3, words)


def test_the_command_its_record_and_sarif(tmp_path: Path) -> None:
    path = tmp_path / "add_u55.pte"
    path.write_bytes(golden("add_u55"))
    shown = sdk_ok("check", path, "--board", E7_HE, cwd=tmp_path).out
    assert shown.startswith("PASS: add_u55.pte on alif-e7-he (ethos-u55-128), untested on hardware")
    arguments = ("check", path, "--board", "ek-ra8p1", "--sarif", "found.sarif")
    assert_clear(sdk(*arguments, cwd=tmp_path), 7, "macs_per_cc is 7, not 8")
    log = json.loads((tmp_path / "found.sarif").read_text())
    jsonschema.validate(log, json.loads((ROOT / "tests/golden/formats/sarif-2.1.0-rtm.5.json").read_text()))
    (result,) = log["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("pre-flight", "error")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "add_u55.pte"
    assert "NPU config mismatch" in result["message"]["text"]
    record = printed(sdk(*arguments, "--json", cwd=tmp_path), 7)
    assert (record["status"], record["board"]["npus"]) == ("fail", ["ethos-u55-256"])
    (tmp_path / "check.json").write_text(json.dumps(record))
    sdk_ok("convert", "check.json", "--to", "sarif", "-o", "again.sarif", cwd=tmp_path)
    again = json.loads((tmp_path / "again.sarif").read_text())["runs"][0]["results"]
    assert [row["message"] for row in again] == [result["message"]]
    other = bytearray(golden("add_u55"))
    _input_of(3)(other)
    cut = tmp_path / "cut.pte"
    cut.write_bytes(other)
    assert_clear(sdk("check", cut, "--board", E7_HE, cwd=tmp_path), 3, "20 bytes where the delegate has 12")
    cut.write_bytes(golden("add_u55")[:-200])
    assert_clear(sdk("check", cut, "--board", E7_HE, cwd=tmp_path), 3, "cut.pte")
    assert_clear(sdk("check", path, "--board", "alif", cwd=tmp_path), 2, "there is no board profile 'alif'")
    assert_clear(
        sdk("check", path, "--board", E7_HE, "--address", "up", cwd=tmp_path), 2, "'up' is not an address"
    )
