"""Helium's implementations of the kernels against the scalar ones, on QEMU's Cortex-M55, over random cases.

The programs in twins/ compare the two in one run, but operators.cpp, which is linked with each of them.
kernels/test_kernels.py compares the kernels with ExecuTorch's runtime.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk.firmware_build.generated_files import kernel_manifest
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
VECTORS = ("copy_vectors.cpp", "int8_vectors.cpp", "quantize_vectors.cpp")
OPERATOR_SOURCES = (
    *(
        f"cortex_m_{name}"
        for name in ("convolution", "transpose_convolution", "pooling", "softmax", "linear")
    ),
    *("cortex_m_elementwise", "quantize", "selection", "permute", "fill"),
)
DIGEST = re.compile(r"operator (\w+) cases (\d+) digest (\d+)")
ROW = re.compile(r"(\w+ \w+) cases (\d+) vectorised (\d+) unlike (\d+)")


def run_program(elf: Path) -> str:
    """What a program prints on QEMU."""
    command = [*QEMU, "-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    done = subprocess.run(command, check=True, timeout=240, capture_output=True, text=True)
    return done.stdout + done.stderr


def run_twins(program: str, vectors: Path, folder: Path) -> dict[str, tuple[int, int, int]]:
    """Operator and dtype → cases, those that vectors computed, and elements that differ.

    What is compiled beside the vectors is taken from `folder` if it is there.
    """
    elf, objects = folder / "twins.elf", folder / program
    if not objects.is_dir():
        objects.mkdir()
        common = [SUPPORT / "softmax_lane.cpp"] if program == "int8" else []
        sources = [TWINS / "start.cpp", TWINS / f"{program}.cpp", *common]
        subprocess.run([*COMPILE, "-c", *map(str, sources)], check=True, timeout=120, cwd=objects)
    linked = [str(vectors), *map(str, objects.glob("*.o"))]
    subprocess.run([*COMPILE, *linked, "-o", str(elf)], check=True, timeout=120)
    rows = ROW.findall(run_program(elf))
    return {name: (int(cases), int(vectorised), int(unlike)) for name, cases, vectorised, unlike in rows}


@dataclass(frozen=True)
class Operators:
    """The program of all operators: its objects but those of the vectors, and a folder for what is made of it."""

    objects: tuple[Path, ...]
    folder: Path

    def digests(self, *vectors: Path) -> dict[str, list[tuple[int, ...]]]:
        """For each operator (cases, digest of their results) at every hundred cases."""
        elf = self.folder / "operators.elf"
        sources = [str(path) for path in (*self.objects, *vectors)]
        flags = [*COMPILE, "-ffunction-sections", "-Wl,--gc-sections"]
        subprocess.run([*flags, *sources, "-o", str(elf)], check=True, timeout=240)
        found: dict[str, list[tuple[int, ...]]] = {}
        for name, *numbers in DIGEST.findall(run_program(elf)):
            found.setdefault(name, []).append(tuple(map(int, numbers)))
        return found


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Operators:
    folder = tmp_path_factory.mktemp("operators")
    kernels = kernel_manifest(FIRMWARE / "kernels" / "kernels.toml")
    functions = sorted({kernel.function for kernel in kernels.values()})
    declared = [f"Status {name}(KernelContext&, Span<Value* const>);" for name in functions]
    text = "\n".join(
        ['#include "kernels/support/kernel_api.hpp"', "namespace ethosu_sdk::kernels {", *declared, "}"]
    )
    (folder / "kernels").mkdir()
    (folder / "kernels" / "kernels.hpp").write_text(text, encoding="utf-8")
    sources = [
        *(TWINS / "start.cpp", TWINS / "operators.cpp", FIRMWARE / "base" / "text.cpp"),
        *(FIRMWARE / "kernels" / "operators" / f"{name}.cpp" for name in OPERATOR_SOURCES),
        *SUPPORT.glob("*.cpp"),
    ]
    command = [*COMPILE, "-ffunction-sections", f"-I{folder}", "-c", *map(str, sources)]
    subprocess.run(command, check=True, timeout=400, cwd=folder)
    return Operators(tuple(folder.glob("*.o")), folder)


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
        "copy_rows",
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


@pytest.fixture(scope="module")
def scalar_digests(operators: Operators) -> dict[str, list[tuple[int, ...]]]:
    return operators.digests(*(SUPPORT / "scalar" / name for name in VECTORS))


def test_operators(operators: Operators, scalar_digests: dict[str, list[tuple[int, ...]]]) -> None:
    """All of the dialect's operators: their results with Helium are those of the scalar loops, call by call."""
    kernels = kernel_manifest(FIRMWARE / "kernels" / "kernels.toml")
    dialect = {
        name.removesuffix(".out").partition("::")[2] for name in kernels if name.startswith("cortex_m::")
    }
    assert set(scalar_digests) == dialect
    assert operators.digests(*(HELIUM / name for name in VECTORS)) == scalar_digests
    for name, rows in scalar_digests.items():
        assert rows[-1][0] >= LEAST_CASES, name
        assert len({digest for _, digest in rows}) == len(rows), name


def test_a_wrong_twin_of_an_operator_is_noticed(
    operators: Operators, scalar_digests: dict[str, list[tuple[int, ...]]], tmp_path: Path
) -> None:
    """Sums of 16 products instead of all change the matrix products and convolutions, and nothing else."""
    source = (HELIUM / "int8_vectors.cpp").read_text(encoding="utf-8")
    altered = tmp_path / "int8_vectors.cpp"
    altered.write_text(source.replace("count / 16; i > 0", "count / 17; i > 0"), encoding="utf-8")
    others = [HELIUM / name for name in VECTORS if name != altered.name]
    found = operators.digests(altered, *others)
    unlike = {name for name, rows in found.items() if rows != scalar_digests[name]}
    forms = ("", "_nhwc")
    convolutions = {f"quantized_{kind}conv2d{form}" for kind in ("", "transpose_") for form in forms}
    assert unlike == convolutions | {"quantized_linear", "quantized_batch_matmul"}


WRONG = {
    "quantize": (
        ("vcvtnq_s32_f32", "vcvtaq_s32_f32"),  # ties away from zero
        ("invalid_operation = 1", "invalid_operation = 0"),  # NaN as Helium converts it
        (" | alternative_halves", ""),  # infinities, which saturate
        ("(invalid_operation | flush_halves)", "invalid_operation"),  # a caller's FZ16
        ("set_floating_point_status(before_);", ""),  # a caller's FPSCR
        (
            r'IF_SHIFTED("vcmp.f16 ge, q" a ", q" b "\n")',
            "",
        ),  # numbers beyond half precision that have no infinity
        ("largest_shift = 1024", "largest_shift = 3000"),  # integers that half precision rounds
        ("duplicated(minimum)", "duplicated(Limits::min())"),  # a narrower range
        ("0x1p-24F", "0x1p-23F"),
        ("0x1p-102F", "0x1p-126F"),  # factors that are flushed to zero
        ("0x1p125F", "0x1p127F"),  # products of numbers that are flushed to zero
        ("largest_zero_point = 1 << 22", "largest_zero_point = 1 << 30"),
    ),
    "copy": (("from < to_end &&", "from > to_end &&"),),  # rows that overlap
    "int8": (
        ("vqaddq_s32(products", "vqsubq_s32(products"),  # ties of negative numbers
        ("vminq_s32(results, vdupq_n_s32(127))", "results"),  # the whole share, which is 256
        ("if (!scales.are_plain)", "if (false)"),  # left shifts, which saturate
    ),
}


@pytest.mark.parametrize("program", WRONG)
def test_wrong_twins_are_noticed(program: str, tmp_path: Path) -> None:
    name = f"{program}_vectors.cpp"
    source = (HELIUM / name).read_text(encoding="utf-8")
    altered = tmp_path / name
    unnoticed = []
    for right, wrong in WRONG[program]:
        assert source.count(right) == 1
        altered.write_text(source.replace(right, wrong), encoding="utf-8")
        if sum(unlike for _, _, unlike in run_twins(program, altered, tmp_path).values()) == 0:
            unnoticed.append((right, wrong))
    assert unnoticed == []
