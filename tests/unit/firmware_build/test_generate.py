"""The text of the generated files."""

from ethosu_sdk import boards, protocol
from ethosu_sdk.firmware_build import generate, layout
from ethosu_sdk.firmware_build.generate import Configuration
from ethosu_sdk.firmware_build.kernels import Kernel
from ethosu_sdk.firmware_build.method_memory import Buffer, MethodMemory

NEEDS = layout.Requirements(
    model_bytes=960,
    memory_mode=None,
    scratch_bytes=0,
    planned_bytes=(320, 64),
    method_pool_bytes=2048,
    input_bytes=(160,),
)
LAYOUT = layout.plan(NEEDS, boards.board("corstone-300"))
METHOD = MethodMemory("forward", (Buffer(0, 320), Buffer(320, 64)), 2048, 0)
CONFIGURATION = Configuration("1.2.3", (METHOD,), "shared_sram", 10_000)


def test_the_protocol_header_has_constants_and_records_of_the_python_module() -> None:
    lines = generate.shared_sources()["app/protocol.hpp"].decode().splitlines()
    for line in (
        f"constexpr std::uint32_t version = {protocol.VERSION};",
        f'constexpr char record_prefix[] = "{protocol.RECORD_PREFIX}";',
        "constexpr std::uint32_t input_image_header_bytes = 1216;",
        'constexpr Record<2> npu{"npu", {{"id", Kind::number}, {"config", Kind::number}}};',
    ):
        assert line in lines
    assert sum(line.startswith("constexpr Record<") for line in lines) == len(protocol.RECORD_TYPES)
    assert any(line.startswith('constexpr Record<4> instruction{"operator", ') for line in lines)


def test_the_header_of_npu_products_has_their_numbers_and_default_events() -> None:
    text = generate.npu_products()
    assert "enum class Product : std::uint8_t { u55 = 0, u65 = 1, u85 = 2 };" in text
    assert "constexpr std::size_t max_event_counters = 8;" in text
    assert "default_events_u55_u65[] = {\n    130,  // AXI0_RD_DATA_BEAT_RECEIVED\n    386,  //" in text
    assert "constexpr std::uint32_t event_counters_u85 = 8;" in text


def test_a_board_has_its_memories_and_devices() -> None:
    sources = generate.shared_sources()
    script = sources["board/corstone-320/memories.ld"].decode()
    assert "  BRAM (rwx) : ORIGIN = 0x12000000, LENGTH = 0x200000\n" in script
    header = sources["board/corstone-300/memory_map.hpp"].decode()
    assert "constexpr std::uintptr_t npu_base = 0x58102000;" in header
    assert "constexpr std::uint32_t core_clock_hz = 32000000;" in header


def test_model_config_states_every_size() -> None:
    text = generate.model_config(CONFIGURATION, LAYOUT)
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


def test_model_config_has_no_empty_array() -> None:
    method = MethodMemory("forward", (), 512, 1)
    text = generate.model_config(Configuration("1", (method,), "sram_only", 1), LAYOUT)
    assert "npu::MemoryMode::sram_only;" in text
    assert "planned_count = 0;" in text
    assert "planned[] = {{0, 0}};" in text


def test_placement_aliases_every_pool() -> None:
    lines = generate.placement_script(LAYOUT).splitlines()
    assert sorted(lines[1:]) == [
        'REGION_ALIAS("FAST_SCRATCH", SRAM)',
        'REGION_ALIAS("INPUT_IMAGE", DDR)',
        'REGION_ALIAS("METHOD_POOL", DTCM)',
        'REGION_ALIAS("MODEL", DDR)',
        'REGION_ALIAS("PLANNED", DDR)',
        'REGION_ALIAS("SCRATCH", SRAM)',
    ]


def test_selected_kernels_names_exactly_what_was_chosen() -> None:
    text = generate.selected_kernels(
        [Kernel("aten::_softmax.out", "softmax_out", ("self", "out"), "softmax.cpp")]
    )
    assert '{"aten::_softmax.out", kernels::softmax_out}' in text
    assert text.count("kernels::softmax_out") == 1
    assert "return {table, 1};" in text
    assert "return {table, 0};" in generate.selected_kernels([])
