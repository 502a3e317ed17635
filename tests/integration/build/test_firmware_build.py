"""`.pte` → ELF with the real toolchain, and what that ELF does on QEMU without an NPU."""

import re
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import filesystem, proc, tools
from ethosu_sdk.base.errors import BuildError, InputError, ToolError
from ethosu_sdk.firmware_build import cmake, program_firmware
from ethosu_sdk.firmware_build.program_firmware import FirmwareBuild
from ethosu_sdk.run import evidence, input_image, uart
from tests.conftest import ZooPte
from tests.kernels.interpreter.runner import FIRMWARE, host_tree
from tests.unit.run import wire

pytestmark = [pytest.mark.toolchain, pytest.mark.torch]

HEAP_AND_PRINTF = {"malloc", "_malloc_r", "free", "_sbrk", "_sbrk_r", "printf", "_printf_r", "vsnprintf"}
UNWINDER = {"__gxx_personality_v0", "__cxa_throw", "_Unwind_RaiseException", "__dynamic_cast"}


@pytest.fixture(scope="session")
def softmax_pte(zoo_pte: ZooPte) -> Path:
    return zoo_pte("softmax").pte


@pytest.fixture(scope="session")
def softmax(softmax_pte: Path, tmp_path_factory: pytest.TempPathFactory) -> FirmwareBuild:
    return program_firmware.build_firmware(softmax_pte, tmp_path_factory.mktemp("with a space"))


@pytest.fixture(scope="session")
def add(zoo_pte: ZooPte, tmp_path_factory: pytest.TempPathFactory) -> FirmwareBuild:
    return program_firmware.build_firmware(zoo_pte("add").pte, tmp_path_factory.mktemp("add"))


def run_on_qemu(firmware: FirmwareBuild, image: bytes, folder: Path) -> proc.ProcResult:
    """The firmware on the plain machine, which has no NPU; the input image is laid by QEMU's loader."""
    path = folder / "image.bin"
    path.write_bytes(image)
    address = firmware.symbols["input_image"].address
    argv = [
        str(tools.require("qemu-system-arm").path),
        *("-M", "mps3-an547", "-display", "none", "-monitor", "none", "-nodefaults", "-serial", "stdio"),
        *("-nic", "user,restrict=on"),
        *("-semihosting-config", "enable=on,target=native", "-kernel", str(firmware.elf)),
        *("-device", f"loader,file={path},addr={address:#x},force-raw=on"),
    ]
    return proc.run(argv, timeout_s=60, check=False)


def test_the_elf_holds_the_model_byte_for_byte(softmax: FirmwareBuild, softmax_pte: Path) -> None:
    with softmax.elf.open("rb") as stream:
        elf = ELFFile(stream)
        section = elf.get_section_by_name(".model")
        assert section.data() == softmax_pte.read_bytes()
        assert section["sh_addr"] % 128 == 0
        assert elf.header.e_entry & ~1 in range(0x10000000, 0x10080000)


def test_pools_lie_where_the_memory_mode_has_them(softmax: FirmwareBuild, add: FirmwareBuild) -> None:
    origins = {"DDR": 0x70000000, "DTCM": 0x30000000, "SRAM": 0x31000000}
    for firmware in (softmax, add):
        for pool in firmware.pools:
            assert pool.address & 0xFF000000 == origins[pool.memory], pool
        homes = {pool.name: pool.memory for pool in firmware.pools}
        assert homes["model"] == "DDR"
        assert homes["input_image"] == "DDR"
    assert {pool.name: pool.memory for pool in add.pools}["scratch"] == "SRAM"
    assert add.target is not None
    assert softmax.target is None


def test_no_segment_covers_a_pool(softmax: FirmwareBuild) -> None:
    image = softmax.symbols["input_image"]
    with softmax.elf.open("rb") as stream:
        for segment in ELFFile(stream).iter_segments("PT_LOAD"):
            start, size = segment.header.p_vaddr, segment.header.p_memsz
            assert start + size <= image.address or start >= image.address + image.bytes


def test_neither_heap_nor_printf_nor_exceptions_are_linked(
    softmax: FirmwareBuild, add: FirmwareBuild
) -> None:
    for firmware in (softmax, add):
        assert not firmware.symbols.keys() & (HEAP_AND_PRINTF | UNWINDER)


def test_only_the_kernels_of_the_program_are_linked(softmax: FirmwareBuild, add: FirmwareBuild) -> None:
    assert [row.operator for row in softmax.kernels] == ["aten::_softmax.out"]
    assert add.kernels == ()
    name = f"kernels{len('softmax_out')}softmax_out"
    assert any(name in symbol for symbol in softmax.symbols)
    assert not any(name in symbol for symbol in add.symbols)


def test_regions_count_what_the_sections_take(softmax: FirmwareBuild) -> None:
    regions = {row.name: row for row in softmax.regions}
    in_ddr = sum(row.bytes for row in softmax.sections if row.address >= 0x70000000)
    assert regions["DDR"].used_bytes == in_ddr
    assert 0 < regions["ITCM"].used_bytes < 64 << 10
    assert regions["BRAM"].used_bytes == 0


def test_nothing_is_compiled_twice(softmax: FirmwareBuild, softmax_pte: Path) -> None:
    again = program_firmware.build_firmware(softmax_pte, softmax.elf.parent)
    assert again.cached
    assert again.elf_sha256 == softmax.elf_sha256


def test_a_damaged_elf_is_built_again(softmax_pte: Path, tmp_path: Path) -> None:
    first = program_firmware.build_firmware(softmax_pte, tmp_path)
    first.elf.write_bytes(b"damaged")
    again = program_firmware.build_firmware(softmax_pte, tmp_path)
    assert not again.cached
    assert again.elf_sha256 == first.elf_sha256


def test_a_missing_kernel_is_named_before_cmake_runs(
    softmax_pte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ethosu_sdk.firmware_build.generated_files.kernel_manifest", lambda _path: {})
    monkeypatch.setattr(cmake, "build_tree", lambda *_: pytest.fail("CMake was started"))
    with pytest.raises(InputError, match=r"no kernel for aten::_softmax\.out"):
        program_firmware.build_firmware(softmax_pte, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_a_tool_error(
    softmax_pte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tools.probe.cache_clear()
    try:
        with pytest.raises(ToolError, match="arm-none-eabi") as caught:
            program_firmware.build_firmware(softmax_pte, tmp_path / "out")
        assert "gcc-arm-none-eabi" in caught.value.hint
        assert caught.value.exit_code == 4
    finally:
        tools.probe.cache_clear()
    assert not (tmp_path / "out" / "executor_runner.elf").exists()


def test_a_failed_compilation_leaves_no_elf(
    softmax_pte: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "#error broken on purpose\n"
    monkeypatch.setattr("ethosu_sdk.firmware_build.generated_files.selected_kernels", lambda *_: text)
    with pytest.raises(BuildError, match="broken on purpose"):
        program_firmware.build_firmware(softmax_pte, tmp_path)
    assert not (tmp_path / "executor_runner.elf").exists()
    assert (tmp_path / "firmware" / "build.log").is_file()


def test_a_truncated_program_is_an_input_error(softmax_pte: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pte"
    broken.write_bytes(softmax_pte.read_bytes()[:300])
    with pytest.raises(InputError):
        program_firmware.build_firmware(broken, tmp_path / "out")


def test_driver_and_application_pass_their_own_tests_on_this_machine() -> None:
    """In the tree of the interpreter's runner, which has compiled most of it already."""
    programs = []
    for part in ("npu", "app"):
        (items,) = re.findall(
            r"IN ITEMS ([\w ]+)\)", (FIRMWARE / "tests" / part / "CMakeLists.txt").read_text()
        )
        programs += [f"{part}_{name}" for name in items.split()]
    assert len(programs) >= 6
    tree = host_tree(programs)
    argv = ["ctest", "--test-dir", str(tree), "--output-on-failure", "-R", r"^(npu|app)\."]
    result = proc.run(argv, timeout_s=120)
    for name in programs:
        assert f"{name.replace('_', '.', 1)} " in result.output
    assert "100% tests passed" in result.output


@pytest.mark.qemu
def test_softmax_runs_on_the_plain_machine(softmax: FirmwareBuild, softmax_pte: Path, tmp_path: Path) -> None:
    from ethosu_sdk.program import pte

    plan = pte.read(softmax_pte).plan("forward")
    shape = plan.input_tensors()[0].sizes
    arrays = np.random.default_rng(7).normal(0, 4, (3, *shape)).astype(np.float32)
    inferences = tuple((array.tobytes(),) for array in arrays)
    result = run_on_qemu(softmax, input_image.encode_image(inferences), tmp_path)
    expected = evidence.ExpectedRun(
        model_sha256=filesystem.sha256_file(softmax_pte),
        model_bytes=softmax_pte.stat().st_size,
        board="corstone-300",
        steps=wire.steps_of_bytes(inferences),
        outputs=1,
    )
    found = evidence.evidence_of_run(uart.parse_uart(result.output.encode()), expected, result.returncode)
    exact = np.exp(arrays.astype(np.float64) - arrays.max(axis=-1, keepdims=True))
    exact /= exact.sum(axis=-1, keepdims=True)
    for (array,), reference in zip(found.outputs, exact, strict=True):
        np.testing.assert_allclose(array, reference, atol=1e-6)
    assert [row.name for row in found.operators] == ["aten::_softmax.out"]
    pool = next(row for row in found.memory if row["name"] == "method_pool")
    assert 0 < pool["used_bytes"] <= pool["size_bytes"]


@pytest.mark.qemu
@pytest.mark.parametrize("damage", ["nothing laid", "one bit", "another size"])
def test_a_wrong_input_image_is_refused(
    softmax: FirmwareBuild, softmax_pte: Path, tmp_path: Path, damage: str
) -> None:
    from ethosu_sdk.program import pte

    nbytes = pte.read(softmax_pte).plan("forward").input_tensors()[0].nbytes
    image = bytearray(input_image.encode_image([[bytes(nbytes)]]))
    if damage == "nothing laid":
        image = bytearray(16)
    elif damage == "one bit":
        image[-1] ^= 1
    else:
        image = bytearray(input_image.encode_image([[bytes(nbytes + 4)]]))
    result = run_on_qemu(softmax, bytes(image), tmp_path)
    log = uart.parse_uart(result.output.encode())
    codes = {"nothing laid": "no_image", "one bit": "wrong_crc", "another size": "wrong_size"}
    assert result.returncode == 1
    assert log.of_type("error")[0]["code"] == codes[damage]
    assert log.of_type("end")[0]["status"] == "error"
    assert log.of_type("output") == []


@pytest.mark.qemu
def test_a_delegated_program_says_that_there_is_no_npu(add: FirmwareBuild, tmp_path: Path) -> None:
    result = run_on_qemu(add, input_image.encode_image([[bytes(4)]]), tmp_path)
    log = uart.parse_uart(result.output.encode())
    assert result.returncode == 1
    assert [row["code"] for row in log.of_type("error")] == ["npu_absent"]
    assert log.of_type("inference") == []
