"""`ethosu-sdk inspect`: what it shows of real programs, to people and as JSON, and how fast."""

import io
import json
import resource
import struct
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ethosu_sdk.analysis.inspect_command import NOTHING_MORE, describe, described_methods, inspect, npu_share
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.program import pte
from ethosu_sdk.records import validation
from tests.conftest import ZooPte
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.pte_files import NAMES, golden

TIMES_THE_SMALL_ONE = 1.5  # in processor time, measured in turn, so that a busy machine does not matter


def shown(path: Path, width: int = 160) -> str:
    """What `inspect` prints for people."""
    stream = io.StringIO()
    inspect(
        path, as_json=False, options=NOTHING_MORE, console=Console(file=stream, width=width, highlight=False)
    )
    return stream.getvalue()


def row(text: str, start: str) -> str:
    """The line of `text` that starts with `start`, with single spaces."""
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [start]]
    return " ".join(line.split())


@pytest.mark.parametrize("name", NAMES)
def test_json_is_the_description(name: str, tmp_path: Path) -> None:
    path = GOLDEN_PTE / f"{name}.pte"
    outcome = sdk("inspect", path, "--json", cwd=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    assert found["file"]["name"] == path.name
    assert validation.record_problems(found) == []
    assert found == {**describe(path, pte.read(path)).to_json(), "created": found["created"]}


def test_people_see_the_same_facts(tmp_path: Path) -> None:
    outcome = sdk("inspect", GOLDEN_PTE / "add_u55.pte", cwd=tmp_path, env={"COLUMNS": "160"})
    assert (outcome.code, outcome.err) == (0, "")
    text = outcome.out
    program = pte.parse(golden("add_u55"))
    (delegate,) = program.delegates
    assert delegate.vela is not None
    assert row(text, "sha256") == f"sha256 {program.sha256}"
    assert row(text, "target") == "target ethos-u55-128, Ethos_U55_High_End_Embedded, Shared_Sram"
    assert "method forward: 1 of 1 call on the NPU" in text
    assert (
        row(text, "command")
        == f"command stream {len(delegate.vela.command_stream)} CONFIG 0x00001807, ID 0x10066001"
    )
    assert row(text, "scratch") == f"scratch {delegate.vela.scratch_bytes} region 1"
    assert row(text, "%0") == "%0 input int32 [5] 20 1 32"
    assert row(text, "%1") == "%1 output int32 [5] 20 1 0"


def test_cpu_operators_and_their_arguments() -> None:
    text = shown(GOLDEN_PTE / "lists.pte")
    assert "the program delegates nothing to an Ethos-U" in text
    assert "0 of 5 calls on the NPU" in text
    assert "aten::cat.out" in text
    assert "[%8 %11], 1, %14, %14" in text
    assert "[None %3]" in text
    assert row(text, "constants") == "constants 60"


def test_branches_and_constant_methods() -> None:
    assert "cond_value_index 5, destination_instruction 6" in shown(GOLDEN_PTE / "choice.pte")
    text = shown(GOLDEN_PTE / "conv_u65_int8.pte")
    assert row(text, "input0_quant_min") == "input0_quant_min -128"


def test_names_in_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    data = golden("softmax").replace(b"aten::_softmax\0", b"\x1b[31m[red]\x07abc\0")
    assert data != golden("softmax")
    path = tmp_path / "a[b].pte"
    path.write_bytes(data)
    text = shown(path)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[31m[red]\\x07abc.out" in text
    assert "a[b].pte" in text


def test_a_narrow_terminal_loses_nothing() -> None:
    joined = "".join(shown(GOLDEN_PTE / "softmax.pte", width=40).split())
    assert "_softm" in joined
    assert "%1" in joined


def test_a_damaged_file_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "cut.pte"
    path.write_bytes(golden("lists")[:2000])
    outcome = sdk("inspect", path, cwd=tmp_path)
    assert outcome.code == 3
    assert "its program has 2,208 bytes, but the file has 2,000" in outcome.err
    assert outcome.out == ""


def test_shares_of_the_npu() -> None:
    assert npu_share(described_methods(pte.parse(golden("choice")))[0]) == (0, 4)
    assert npu_share(described_methods(pte.parse(golden("add_u55")))[0]) == (1, 1)


@pytest.mark.torch
def test_a_program_with_two_delegates(zoo_pte: ZooPte) -> None:
    compiled = zoo_pte("ds_cnn")
    method = described_methods(pte.read(compiled.pte))[0]
    assert npu_share(method) == (2, 7)
    assert {row.name: row.calls for row in method.operators} == {
        row.name: row.calls for row in compiled.cpu_operators
    }
    assert [row.sha256 for row in method.delegates] == [row.payload_sha256 for row in compiled.delegates]
    assert [row.vela.scratch_bytes for row in method.delegates if row.vela is not None] == [
        row.scratch_bytes for row in compiled.delegates
    ]


def test_a_large_file_is_shown_quickly(tmp_path: Path) -> None:
    """4 MB of weights: the command takes the time of starting Python and Rich, not of copying."""
    path = tmp_path / "large.pte"
    path.write_bytes(enlarged(golden("add_u85_segment"), 4 << 20))
    program = pte.read(path)
    (delegate,) = program.delegates
    assert delegate.vela is not None
    assert len(delegate.vela.weights) == 4 << 20
    times: dict[Path, list[float]] = {GOLDEN_PTE / "add_u85_segment.pte": [], path: []}
    for _ in range(3):
        for shown_path, row_of_times in times.items():
            start = children_s()
            assert sdk("inspect", shown_path, cwd=tmp_path, fresh=True).code == 0
            row_of_times.append(children_s() - start)
    small, large = (min(row_of_times) for row_of_times in times.values())
    assert 0 < large < TIMES_THE_SMALL_ONE * small


def children_s() -> float:
    """Processor time of all child processes that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def enlarged(data: bytes, weight_bytes: int) -> bytes:
    """A program whose only delegate, the last thing in the file, gets other weights."""
    program = pte.parse(data)
    (delegate,) = program.delegates
    vela = vela_blocks.parse(delegate.payload)
    old = next(block for block in vela.blocks if block.name == "weight_data")
    start = delegate.payload_offset + old.offset
    end = start + old.length + -old.length % 16
    growth = weight_bytes - (end - start)
    grown = bytearray(data[:start] + bytes(weight_bytes) + data[end:])
    grown[start - 16 : start - 12] = weight_bytes.to_bytes(4, "little")
    segments_bytes = program.header.segment_bytes
    grown[32:40] = (segments_bytes + growth).to_bytes(8, "little")
    size = len(delegate.payload).to_bytes(8, "little")
    assert data.count(size, 40, program.header.program_bytes) == 1
    where = data.index(size, 40)
    grown[where : where + 8] = (len(delegate.payload) + growth).to_bytes(8, "little")
    return bytes(grown)


def vela_names(stream: bytes) -> list[tuple[int, str]]:
    """(byte offset, name) of each command, by the opcodes of Vela's own register tables."""
    from ethosu.vela.ethos_u55_regs.ethos_u55_regs import cmd0, cmd1

    words = [word for (word,) in struct.iter_unpack("<I", stream)]
    found, position = [], 0
    while position < len(words):
        long = bool(words[position] & 0x4000)
        opcode = words[position] & 0x3FF
        found.append((4 * position, (cmd1 if long else cmd0)(opcode).name))
        position += 2 if long else 1
    return found


@pytest.mark.parametrize("name", ["add_u55", "conv_u65_int8"])
def test_command_streams_are_disassembled(name: str, tmp_path: Path) -> None:
    (delegate,) = pte.parse(golden(name)).delegates
    assert delegate.vela is not None
    expected = vela_names(bytes(delegate.vela.command_stream))
    outcome = sdk_ok("inspect", GOLDEN_PTE / f"{name}.pte", "--commands", "--json", cwd=tmp_path)
    commands = json.loads(outcome.out)["methods"][0]["delegates"][0]["vela"]["commands"]
    assert [(row["offset"], row["name"]) for row in commands] == expected
    assert commands[-1] == {"offset": expected[-1][0], "name": "NPU_OP_STOP", "fields": {"mask": 0xFFFF}}
    text = sdk("inspect", GOLDEN_PTE / f"{name}.pte", "--commands", cwd=tmp_path).out
    lines = [line.split() for line in text.splitlines() if line.startswith("0x")]
    assert [(int(line[0], 16), line[1]) for line in lines] == expected


def test_a_command_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    data = golden("add_u55")
    (delegate,) = pte.parse(data).delegates
    assert delegate.vela is not None
    stop = bytes(delegate.vela.command_stream[-4:])
    assert data.count(stop) == 1
    path = tmp_path / "bad.pte"
    path.write_bytes(data.replace(stop, b"\xff\x03\x00\x00"))
    assert_clear(sdk("inspect", path, "--commands", cwd=tmp_path), 3, "unknown command")
    assert sdk("inspect", path, cwd=tmp_path).code == 0
