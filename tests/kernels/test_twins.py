"""Helium's implementations of the kernels against the scalar ones, on QEMU's Cortex-M55, over random cases.

The programs in twins/ compare the two in one run. kernels/test_kernels.py compares each with ExecuTorch's runtime.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.places import ROOT

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

FIRMWARE = ROOT / "firmware"
SUPPORT = FIRMWARE / "kernels" / "support"
HELIUM = SUPPORT / "helium"
TWINS = Path(__file__).parent / "twins"
COMPILE = (
    *("arm-none-eabi-g++", "-std=c++17", "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard", "-O2"),
    *("-ffp-contract=off", "-fno-tree-vectorize", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-Wall", "-Wextra", "-Werror", "-nostartfiles", "--specs=nano.specs", "-Wl,--no-warn-rwx-segments"),
    *(f"-I{FIRMWARE}", f"-I{TWINS}", "-T", str(TWINS / "twins.ld")),
)
QEMU = ("qemu-system-arm", "-M", "mps3-an547", "-display", "none", "-monitor", "none", "-serial", "none")
LEAST_CASES = 2000
ROW = re.compile(r"(\w+ \w+) cases (\d+) vectorised (\d+) unlike (\d+)")


def run_twins(program: str, vectors: Path, folder: Path) -> dict[str, tuple[int, int, int]]:
    """Operator and dtype → cases, those that vectors computed, and elements that differ."""
    elf = folder / "twins.elf"
    common = [str(SUPPORT / "softmax_lane.cpp")] if program == "int8" else []
    sources = [str(TWINS / "start.cpp"), str(TWINS / f"{program}.cpp"), str(vectors), *common]
    subprocess.run([*COMPILE, *sources, "-o", str(elf)], check=True, timeout=120)
    command = [*QEMU, "-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    rows = ROW.findall(done.stdout + done.stderr)
    return {name: (int(cases), int(vectorised), int(unlike)) for name, cases, vectorised, unlike in rows}


def test_quantize_and_dequantize(tmp_path: Path) -> None:
    found = run_twins("quantize", HELIUM / "quantize_vectors.cpp", tmp_path)
    dtypes = ("int8", "uint8", "int16", "int32")
    assert set(found) == {f"{name} {dtype}" for name in ("quantize", "dequantize") for dtype in dtypes}
    for name, (cases, vectorised, unlike) in found.items():
        assert cases >= LEAST_CASES
        assert unlike == 0, name
        # int32 is quantised one by one.
        assert (vectorised > cases / 2) == (name != "quantize int32"), name


def test_copy(tmp_path: Path) -> None:
    found = run_twins("copy", HELIUM / "copy_vectors.cpp", tmp_path)
    assert set(found) == {f"copy bytes{count}" for count in (1, 2, 4, 8)}
    for name, (cases, vectorised, unlike) in found.items():
        assert cases >= LEAST_CASES
        assert unlike == 0, name
        assert vectorised > cases / 4, name


def test_int8(tmp_path: Path) -> None:
    found = run_twins("int8", HELIUM / "int8_vectors.cpp", tmp_path)
    windows = ("window_products", "shared_window_products")
    functions = (
        "dot_products",
        "sum_of",
        *windows,
        "requantize_all",
        "add_all",
        "requantize_by_one",
        "softmax_lane",
    )
    assert set(found) == {f"int8 {name}" for name in functions}
    for name, (cases, _, unlike) in found.items():
        assert cases >= LEAST_CASES
        assert unlike == 0, name


@pytest.mark.parametrize(
    ("program", "right", "wrong"),
    [
        ("quantize", "vcvtnq_s32_f32", "vcvtaq_s32_f32"),  # ties away from zero
        ("quantize", "invalid_operation = 1", "invalid_operation = 0"),  # NaN as Helium converts it
        ("quantize", "0x1p125F", "0x1p127F"),  # products of numbers that are flushed to zero
        ("quantize", "largest_zero_point = 32000", "largest_zero_point = 100000"),
        ("copy", "from < to_end &&", "from > to_end &&"),  # rows that overlap
        ("int8", "vqaddq_s32(products", "vqsubq_s32(products"),  # ties of negative numbers
        ("int8", "vminq_s32(results, vdupq_n_s32(127))", "results"),  # the whole share, which is 256
        ("int8", "vcmpleq_m_n_s32(shifts, 0", "vcmpleq_m_n_s32(shifts, 31"),  # left shifts, which saturate
    ],
)
def test_a_wrong_twin_is_noticed(program: str, right: str, wrong: str, tmp_path: Path) -> None:
    name = f"{program}_vectors.cpp"
    source = (HELIUM / name).read_text(encoding="utf-8")
    assert source.count(right) == 1
    altered = tmp_path / name
    altered.write_text(source.replace(right, wrong), encoding="utf-8")
    found = run_twins(program, altered, tmp_path)
    assert sum(unlike for _, _, unlike in found.values()) > 0
