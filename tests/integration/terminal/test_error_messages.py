"""The error catalogue against what the tools of this machine really say."""

import subprocess
from pathlib import Path

import pytest

from ethosu_sdk.base import error_catalogue

pytestmark = pytest.mark.toolchain
_SCRIPT = "MEMORY {{ SRAM : ORIGIN = 0x31000000, LENGTH = {} }} SECTIONS {{ .bss : {{ *(.bss*) *(.text*) }} > SRAM }}"


def link(folder: Path, source: str, length: str) -> str:
    (folder / "main.c").write_text(source)
    (folder / "memory.ld").write_text(_SCRIPT.format(length))
    words = [
        "arm-none-eabi-gcc",
        "-mcpu=cortex-m55",
        "-nostdlib",
        "-T",
        "memory.ld",
        "-Wl,-e,0",
        "main.c",
        "-o",
        "a.elf",
    ]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False).stderr


@pytest.mark.parametrize(
    ("source", "length", "wanted"),
    [
        ("char arena[8192];", "4K", ["link-region-overflow"]),
        ("void ethosu_init(void); void f(void) { ethosu_init(); }", "4K", ["link-undefined-reference"]),
        ("char arena[1024];", "4K", []),
    ],
)
def test_the_linker(source: str, length: str, wanted: list[str], tmp_path: Path) -> None:
    said = link(tmp_path, source, length)
    assert [error.id for error in error_catalogue.in_text(said.splitlines())] == wanted, said


def test_the_loader(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    (tmp_path / "lib.c").write_text("int f(void) { return 0; }")
    (tmp_path / "main.c").write_text("int f(void); int main(void) { return f(); }")
    assert run("gcc", "-shared", "-fPIC", "lib.c", "-o", "libgone.so").returncode == 0
    assert run("gcc", "main.c", "-L.", "-lgone", "-o", "program").returncode == 0
    (tmp_path / "libgone.so").unlink()
    said = run("./program")
    assert said.returncode != 0
    assert [error.id for error in error_catalogue.in_text(said.stderr.splitlines())] == [
        "fvp-missing-library"
    ]
