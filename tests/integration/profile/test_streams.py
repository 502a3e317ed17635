"""Bare command streams (COP1): what Vela wrote into real programs, taken out of them, and damaged ones."""

import json
import random
import struct
from pathlib import Path

import pytest

from campaigns.attack import damage
from ethosu_sdk.analysis import inspect_command, profile_stream
from ethosu_sdk.analysis.inspect_command import InspectOptions
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import cop1, pte
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.tables import each

pytestmark = pytest.mark.core
STREAMS = ("add_u55", "add_u85_segment", "conv_u65_int8")


def _blocks(name: str) -> VelaBlocks:
    (delegate,) = pte.read(GOLDEN_PTE / f"{name}.pte").delegates
    assert delegate.vela is not None
    return delegate.vela


def _stream(name: str, folder: Path) -> Path:
    path = folder / f"{name}.cop1"
    path.write_bytes(_blocks(name).command_data)
    return path


@each("name", STREAMS)
def test_what_a_stream_says_is_what_the_program_says(name: str, tmp_path: Path) -> None:
    record = inspect_command.inspect_file(
        _stream(name, tmp_path), InspectOptions(commands=True, hazards=True)
    )
    (delegate,) = record.methods[0].delegates
    vela, whole = delegate.vela, _blocks(name)
    assert vela is not None
    assert (vela.config_word, vela.arch_word) == (f"{whole.config_word:#010x}", f"{whole.arch_word:#010x}")
    assert vela.command_stream_bytes == len(whole.command_stream)
    assert vela.commands is not None
    assert vela.commands[-1].name == "NPU_OP_STOP"
    assert vela.hazards == ()
    # The commands read all weights that Vela packed, up to their padding, and stay in its scratch memory.
    assert len(whole.weights) - 16 < vela.weight_bytes <= len(whole.weights)
    assert 0 < vela.scratch_bytes <= whole.scratch_bytes
    assert record.target is None


@each("name", STREAMS)
def test_damage_is_told(name: str, tmp_path: Path) -> None:
    data = bytes(_blocks(name).command_data)
    choice = random.Random(name)
    read = 0
    for number in range(400):
        path = tmp_path / f"{number}.cop1"
        path.write_bytes(damage.damaged(choice, data))
        try:
            inspect_command.inspect_file(path, InspectOptions(commands=True, hazards=True))
            profile_stream.profile_of_stream(path, CompileOptions(), None)
            read += 1
        except InputError:
            continue
    assert 0 < read < 400


def _cases() -> dict[str, tuple[bytes, str]]:
    data = bytes(_blocks("add_u55").command_data)
    (config,) = struct.unpack_from("<I", data, 8)
    other = struct.pack("<I", config ^ 0x3000_0000)
    return {
        "nothing": (b"", "is an empty file"),
        "pte": ((GOLDEN_PTE / "add_u55.pte").read_bytes(), "is a compiled ExecuTorch program"),
        "name": (b"COP1", "has no configuration action"),
        "cut": (data[:-8], "are left"),
        "product": (data[:8] + other + data[12:], "the NPU model does not cover product 3-128"),
        "stop": (data[:-4] + struct.pack("<I", 0x0105), "has no NPU_OP_STOP"),
    }


@each("case", ("nothing", "pte", "name", "cut", "product", "stop"))
def test_what_is_no_stream(case: str, tmp_path: Path) -> None:
    content, words = _cases()[case]
    path = tmp_path / "x.cop1"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        cop1.read(path)


def test_a_stream_is_for_its_npu(tmp_path: Path) -> None:
    path = _stream("add_u55", tmp_path)
    with pytest.raises(UsageError, match="is for ethos-u55-128, not ethos-u85-256"):
        profile_stream.profile_of_stream(path, CompileOptions(target="ethos-u85-256"), None)
    with pytest.raises(UsageError, match="ek-ra8p1 has no ethos-u55-128"):
        profile_stream.profile_of_stream(path, CompileOptions(system="ek-ra8p1"), None)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return _stream("conv_u65_int8", tmp_path)


def test_a_stream_is_priced(stream: Path, tmp_path: Path) -> None:
    system = ("--system", "imx93")
    record = json.loads(sdk_ok("profile", stream.name, *system, "--json", cwd=tmp_path).out)
    operations = record["operations"]
    convolutions = [row for row in operations if row["kind"] == "conv"]
    # The shapes of the program's tensors are in the stream.
    assert [row["shapes"]["ofm"] for row in convolutions] == [[4, 4, 2]]
    (modelled,) = record["totals"]["npu"]["cycles"]
    start = record["delegates"][0]["start_cycles"]
    assert modelled["value"] == start + sum(row["cycles"][0]["value"] for row in operations)
    assert record["clock"]["hz"] == 1e9
    assert not {"simulator", "board", "target", "time"} & record.keys()
    assert not any("constants_sha256" in row for row in operations)
    place = tmp_path / "build/conv_u65_int8-ethos-u65-256"
    sdk_ok("validate", place / "profile.json", cwd=tmp_path)
    shown = sdk_ok("profile", stream.name, *system, cwd=tmp_path).out
    assert "not run: it has no weights" in shown


def test_a_stream_does_not_run(stream: Path, tmp_path: Path) -> None:
    assert_clear(
        sdk("run", stream.name, cwd=tmp_path), 3, "without weights", "ethosu-sdk profile conv_u65_int8.cop1"
    )
    refused = sdk("profile", stream.name, "--steps", "2", cwd=tmp_path)
    assert_clear(refused, 2, "--steps needs a run")
