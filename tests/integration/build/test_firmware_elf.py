"""The ELF as a product: how large it is, what of it is stored, and that anyone who builds it gets the same bytes."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import filesystem, proc, resources
from ethosu_sdk.firmware_build import program_firmware
from ethosu_sdk.firmware_build.program_firmware import FirmwareBuild
from tests.integration.cli import COMMAND
from tests.places import ROOT

pytestmark = pytest.mark.toolchain

GOLDEN = ROOT / "tests" / "golden" / "pte" / "add_u55.pte"  # all of it runs on the NPU
IMAGE_LIMIT_BYTES = 64 << 10
NAMES_AND_LINES_LIMIT_BYTES = 192 << 10
POOLS = (".scratch", ".planned", ".method_pool", ".input_image", ".bss", ".stack")
SHF_ALLOC = 2


@pytest.fixture(scope="module")
def delegated(tmp_path_factory: pytest.TempPathFactory) -> FirmwareBuild:
    return program_firmware.build_firmware(GOLDEN, tmp_path_factory.mktemp("delegated"))


def stored_bytes(elf: ELFFile) -> dict[str, int]:
    """What a loader writes: size in bytes of each section."""
    rows = (
        row for row in elf.iter_sections() if row["sh_flags"] & SHF_ALLOC and row["sh_type"] != "SHT_NOBITS"
    )
    return {row.name: row["sh_size"] for row in rows if row["sh_size"]}


def test_a_fully_delegated_model_needs_at_most_64_kib_of_firmware(delegated: FirmwareBuild) -> None:
    with delegated.elf.open("rb") as stream:
        stored = stored_bytes(ELFFile(stream))
    assert stored.pop(".model") == GOLDEN.stat().st_size
    image = sum(stored.values())
    assert 16 << 10 < image <= IMAGE_LIMIT_BYTES
    argv = [
        sys.executable,
        str(ROOT / "benchmarks" / "firmware_size.py"),
        str(delegated.elf.parent),
        "--json",
    ]
    told = json.loads(proc.run(argv, timeout_s=60).output)
    assert sum(told["totals"][kind] for kind in ("text", "rodata", "data")) == image
    known = {"board", "base", "npu driver", "runtime", "kernels", "app", "libc, libgcc", "alignment"}
    assert told["parts"].keys() <= known
    assert told["parts"].keys() >= {"board", "npu driver", "runtime", "app"}
    for kind, total in told["totals"].items():
        assert sum(row[kind] for row in told["parts"].values()) == total
    assert 0 <= told["parts"]["alignment"]["text"] + told["parts"]["alignment"]["rodata"] < 512


def test_pools_take_no_room_in_the_file(delegated: FirmwareBuild) -> None:
    """Text, model, and names and lines for addr2line: megabytes of pools are not among them."""
    with delegated.elf.open("rb") as stream:
        elf = ELFFile(stream)
        pools = [row for row in elf.iter_sections() if row.name in POOLS]
        assert {row.name for row in pools} == set(POOLS)
        assert all(row["sh_type"] == "SHT_NOBITS" for row in pools)
        assert sum(row["sh_size"] for row in pools) > 1 << 20
        loaded = sum(segment["p_filesz"] for segment in elf.iter_segments("PT_LOAD"))
        assert loaded < sum(stored_bytes(elf).values()) + 64
    assert delegated.elf.stat().st_size < loaded + NAMES_AND_LINES_LIMIT_BYTES


def build_as_somebody_else(pte: Path, out: Path, place: Path) -> str:
    """SHA-256 of the ELF that another user gets: other folders, with spaces, home, umask, time zone and language."""
    env = {
        **os.environ,
        "HOME": str(filesystem.make_directory(place / "their home")),
        "TMPDIR": str(filesystem.make_directory(place / "their tmp")),
        "ETHOSU_SDK_FIRMWARE": str(place / "their firmware"),
        "ETHOSU_SDK_CACHE": str(place / "their cache"),
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "tr_TR.UTF-8",
        "USER": "somebody",
        "SOURCE_DATE_EPOCH": "1",
    }
    argv = [str(COMMAND), "build", str(pte), "-o", str(out), "--json"]
    done = proc.run(
        ["/bin/sh", "-c", 'umask 077; exec "$@"', "sh", *argv], cwd=place, env=env, timeout_s=600, check=False
    )
    assert done.returncode == 0, done.output
    return filesystem.sha256_file(out / "executor_runner.elf")


def test_anyone_gets_the_same_bytes_and_another_model_gives_others(
    delegated: FirmwareBuild, tmp_path: Path
) -> None:
    place = filesystem.make_directory(tmp_path / "a place with spaces")
    shutil.copytree(resources.directory("firmware"), place / "their firmware")
    copy = place / "other name.pte"
    shutil.copyfile(GOLDEN, copy)
    assert build_as_somebody_else(copy, place / "their out", place) == delegated.elf_sha256
    data = bytearray(copy.read_bytes())
    data.append(0)  # behind the program
    copy.write_bytes(data)
    first = build_as_somebody_else(copy, place / "their out", place)
    data[-1] = 1
    copy.write_bytes(data)
    assert len({delegated.elf_sha256, first, build_as_somebody_else(copy, place / "their out", place)}) == 3
