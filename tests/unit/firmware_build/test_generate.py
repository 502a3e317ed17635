"""The text of generated files, the choice of kernels, and the memory that an image uses."""

from pathlib import Path

import pytest

from ethosu_sdk.base import boards
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.firmware_build import executable, generated_files, memory_fit
from ethosu_sdk.firmware_build.executable import Image, Section, Symbol
from ethosu_sdk.firmware_build.generated_files import Kernel, ModelConfiguration
from ethosu_sdk.firmware_build.memory_fit import Buffer, MethodMemory
from ethosu_sdk.program import protocol
from tests.tables import each

NEEDS = memory_fit.Requirements(
    model_bytes=960,
    memory_mode=None,
    scratch_bytes=0,
    planned_bytes=(320, 64),
    method_pool_bytes=2048,
    input_bytes=(160,),
)
LAYOUT = memory_fit.planned_layout(NEEDS, boards.board_named("corstone-300"))
METHOD = MethodMemory("forward", (Buffer(0, 320), Buffer(320, 64)), 2048, 0)
CONFIGURATION = ModelConfiguration("1.2.3", (METHOD,), "shared_sram", 10_000)


def test_shared_sources_are_those_of_the_python_modules() -> None:
    lines = generated_files.shared_sources()["app/protocol.hpp"].decode().splitlines()
    for line in (
        f"constexpr std::uint32_t version = {protocol.VERSION};",
        f'constexpr char record_prefix[] = "{protocol.RECORD_PREFIX}";',
        "constexpr std::uint32_t input_image_header_bytes = 1216;",
        'constexpr Record<2> npu{"npu", {{"id", Kind::number}, {"config", Kind::number}}};',
    ):
        assert line in lines
    assert sum(line.startswith("constexpr Record<") for line in lines) == len(protocol.RECORD_TYPES)
    assert any(line.startswith('constexpr Record<4> instruction{"operator", ') for line in lines)
    text = generated_files.npu_products()
    assert "enum class Product : std::uint8_t { u55 = 0, u65 = 1, u85 = 2 };" in text
    assert "constexpr std::size_t max_event_counters = 8;" in text
    assert "default_events_u55_u65[] = {\n    130,  // AXI0_RD_DATA_BEAT_RECEIVED\n    386,  //" in text
    assert "constexpr std::uint32_t event_counters_u85 = 8;" in text
    sources = generated_files.shared_sources()
    script = sources["board/corstone-320/memories.ld"].decode()
    assert "  BRAM (rwx) : ORIGIN = 0x12000000, LENGTH = 0x200000\n" in script
    header = sources["board/corstone-300/memory_map.hpp"].decode()
    assert "constexpr std::uintptr_t npu_base = 0x58102000;" in header
    assert "constexpr std::uint32_t core_clock_hz = 32000000;" in header


def test_model_config_states_every_size_and_has_no_empty_array() -> None:
    text = generated_files.model_config(CONFIGURATION, LAYOUT)
    for line in (
        'constexpr char firmware[] = "executor_runner 1.2.3";',
        'constexpr Method methods[] = {{"forward", 0, 2048, 2}};',
        "constexpr std::size_t method_count = 1;",
        "constexpr std::size_t delegate_count = 0;",
        "constexpr std::uint32_t npu_timeout_ms = 10000;",
        "constexpr npu::MemoryMode memory_mode = npu::MemoryMode::shared_sram;",
        "constexpr std::size_t method_pool_bytes = 2048;",
        "constexpr std::size_t planned_pool_bytes = 384;",
        "constexpr std::size_t input_image_bytes = 1048576;",
        "constexpr std::size_t planned_count = 2;",
        "constexpr Buffer planned[] = {{0, 320}, {320, 64}};",
    ):
        assert line in text.splitlines()
    method = MethodMemory("forward", (), 512, 1)
    text = generated_files.model_config(ModelConfiguration("1", (method,), "sram_only", 1), LAYOUT)
    assert "npu::MemoryMode::sram_only;" in text
    assert "planned_count = 0;" in text
    assert "planned[] = {{0, 0}};" in text


def test_pools_and_kernels_are_exactly_those_that_were_chosen() -> None:
    lines = generated_files.placement_script(LAYOUT).splitlines()
    assert sorted(lines[1:]) == [
        'REGION_ALIAS("FAST_SCRATCH", SRAM)',
        'REGION_ALIAS("INPUT_IMAGE", DDR)',
        'REGION_ALIAS("METHOD_POOL", DTCM)',
        'REGION_ALIAS("MODEL", DDR)',
        'REGION_ALIAS("PLANNED", DDR)',
        'REGION_ALIAS("SCRATCH", SRAM)',
    ]
    text = generated_files.selected_kernels(
        [Kernel("aten::_softmax.out", "softmax_out", ("self", "out"), "softmax.cpp")]
    )
    assert '{"aten::_softmax.out", kernels::softmax_out}' in text
    assert text.count("kernels::softmax_out") == 1
    assert "return {table, 1};" in text
    assert "return {table, 0};" in generated_files.selected_kernels([])


# --- The kernel manifest and the choice from it.

ROWS = """
[softmax]
"aten::_softmax.out" = "softmax_out(self, dim, half_to_float, out)"

[add]
"aten::add.out" = "add_out(self, other, alpha, out)"
"""


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Kernel]:
    path = tmp_path / "kernels.toml"
    path.write_text(ROWS)
    return generated_files.kernel_manifest(path)


def test_kernels_are_chosen_once_with_their_sources_and_missing_ones_named(known: dict[str, Kernel]) -> None:
    row = known["aten::_softmax.out"]
    assert (row.name, row.overload, row.function) == ("aten::_softmax", "out", "softmax_out")
    assert row.parameters == ("self", "dim", "half_to_float", "out")
    assert row.source == "softmax.cpp"
    assert [row.function for row in generated_files.select_kernels(["aten::_softmax.out"] * 3, known)] == [
        "softmax_out"
    ]
    assert generated_files.select_kernels([], known) == ()
    with pytest.raises(InputError) as caught:
        generated_files.select_kernels(["aten::convolution.out", "aten::add.out", "aten::bmm.out"], known)
    assert caught.value.message.endswith("aten::bmm.out, aten::convolution.out")
    assert "docs/reference/kernels.md" in caught.value.hint
    sources = {
        "kernels/operators/softmax.cpp": b'#include "kernels/operators/fill.hpp"\n',
        "kernels/operators/fill.cpp": b'#include "kernels/operators/fill.hpp"\n#include "base/span.hpp"\n',
    }
    chosen = generated_files.select_kernels(["aten::_softmax.out"], known)
    assert generated_files.source_list(chosen, sources) == "operators/fill.cpp\noperators/softmax.cpp\n"
    assert generated_files.source_list([], sources) == ""


@each(
    "text",
    [
        "kernel = 1",
        "[[add]]\n'aten::add.out' = 'f(out)'\n",
        "not toml",
        "[add]\n'aten::add.out' = 1\n",
        "[add]\n'aten::a\"b' = 'f(out)'\n",
        "[add]\n'aten::add.out' = 'f()'\n",
        "[add]\n'aten::add.out' = 'f'\n",
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(text)
    with pytest.raises(BuildError):
        generated_files.kernel_manifest(path)


# --- Use of memory, counted from sections.

BOARD = boards.board_named("corstone-300")
SECTIONS = (
    Section(".text", 0x10000400, 0x10000400, 5000, in_file=True),
    Section(".data", 0x30000000, 0x10002000, 16, in_file=True),  # copied from ITCM at start-up
    Section(".bss", 0x30000010, 0x30000010, 64, in_file=False),
    Section(".model", 0x70000000, 0x70000000, 960, in_file=True),
    Section(".input_image", 0x70000400, 0x70000400, 1 << 20, in_file=False),
)


def test_regions_and_symbols_of_an_image() -> None:
    used = {row.name: row.used_bytes for row in executable.region_use(Image(SECTIONS, {}), BOARD)}
    assert used == {"ITCM": 5016, "BRAM": 0, "DTCM": 80, "SRAM": 0, "DDR": 960 + (1 << 20)}
    rows = executable.region_use(Image((), {}), BOARD)
    assert [(row.name, row.size_bytes) for row in rows] == [
        (memory.name, memory.size_bytes) for memory in BOARD.memories
    ]
    image = Image((), {"input_image": Symbol("input_image", 0x70000400, 64)})
    assert image.symbol("input_image").bytes == 64
    with pytest.raises(BuildError, match="'other'"):
        image.symbol("other")


@pytest.mark.parametrize("content", [b"", b"not an ELF file", b"\x7fELF" + bytes(60)])
def test_a_file_that_is_no_elf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.elf"
    path.write_bytes(content)
    with pytest.raises(BuildError, match="ELF"):
        executable.read_elf(path)
