"""The error catalogue against ExecuTorch's own header, real messages, and its documentation."""

import re

import pytest

from ethosu_sdk.base import error_catalogue
from ethosu_sdk.base.errors import UsageError
from tests import installed
from tests.tables import each

_ENUMERATOR = re.compile(r"^  (\w+) = (0x[0-9a-fA-F]+),", re.MULTILINE)


def executorch_codes() -> dict[str, int]:
    """The enum of runtime/core/error.h in the wheel, whose Ok is no error."""
    header = installed.folder("executorch") / "include/executorch/runtime/core/error.h"
    return {name: int(value, 16) for name, value in _ENUMERATOR.findall(header.read_text()) if name != "Ok"}


def test_errors_are_executorchs_and_others_unknown() -> None:
    ours = {error.name: error.code for error in error_catalogue.known_errors() if error.code is not None}
    assert ours == executorch_codes()
    assert len(ours) > 15
    with pytest.raises(UsageError, match="no known error"):
        error_catalogue.look_up("all is well")


def test_ids_are_unique_and_entries_say_what_to_do() -> None:
    errors = error_catalogue.known_errors()
    assert len({error.id for error in errors}) == len(errors)
    for error in errors:
        assert error.patterns or error.code is not None, error.id
        assert error.cause.endswith("."), error.id
        assert error.fix.endswith("."), error.id


# Lines as tools and firmware print them, each with the entry that must be found.
SAMPLES = {
    "region `SRAM' overflowed by 4096 bytes": "link-region-overflow",
    "/usr/bin/ld: executor_runner.elf section `.bss' will not fit in region `DTCM'": "link-region-overflow",
    "main.cpp:(.text+0x4): undefined reference to `ethosu_init'": "link-undefined-reference",
    "FVP_Corstone_SSE-320: error while loading shared libraries: libpython3.9.so.1.0: "
    "cannot open shared object file: No such file or directory": "fvp-missing-library",
    "libx.so: cannot enable executable stack as shared object requires: Invalid argument": "fvp-executable-stack",
    "./FVP: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./FVP)": "fvp-old-glibc",
    "FATAL ERROR: The number of MACs parameter value '100' for Ethos-U55 is not valid! "
    "Expected 32, 64, 128, or 256.": "fvp-wrong-macs",
    "Info: Simulation is stopping. Reason: CPU time has been exceeded.": "fvp-cpu-time-limit",
    "Info: Simulation is stopping. Reason: Simulated time has been exceeded.": "fvp-simulated-time-limit",
    "Info: Simulation is stopping. Reason: Cycle limit has been exceeded.": "fvp-cycle-limit",
    "E: NPU config mismatch. npu.macs_per_cc=E: NPU config mismatch..": "npu-config-mismatch",
    "E: NPU status=0x00000022, qread=128, cmd_end_reached=0": "npu-status",
    "E [executorch:runner.cpp:1] Failed to allocate scratch buffer of 1048576 bytes from temp_allocator": (
        "executorch-delegate-memory"
    ),
    "E [executorch:a.cpp:1] Could not allocate memory for planned buffer with mem_id=1": (
        "executorch-memory-allocation-failed"
    ),
    "Program loading failed @ 0x70000000: 0x23": "executorch-invalid-program",
    "Error::OperatorMissing": "executorch-operator-missing",
    "input size (4) and tensor size (16) mismatch!": "runner-input-size",
    "Application exit code: 1.": "firmware-exit-code",
    "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
    "Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: none)": "export-data-dependent",
    "ValueError: Exporting a ScriptModule is not supported. Maybe try converting": "export-script-module",
}


@each(("line", "wanted"), SAMPLES.items())
def test_messages_are_recognised(line: str, wanted: str) -> None:
    assert wanted in [error.id for error in error_catalogue.in_line(line)]


@each(
    "line",
    [
        "I [executorch:a.cpp:1] loaded with status 0x0",
        "ethosu_pmu_cntr0 : 21",
        "Application exit code: 0.",
        "a value of 0x21 somewhere",
        "I [executorch:a.cpp:1] error 0x210000",
        "x" * 100_000 + " status 0x21",
    ],
)
def test_harmless_lines_are_no_error(line: str) -> None:
    assert error_catalogue.in_line(line) == []


@pytest.mark.parametrize(
    "words", ["executorch-memory-allocation-failed", "0x21", "21", "MemoryAllocationFailed"]
)
def test_an_error_is_found_by_id_code_and_name(words: str) -> None:
    assert [error.code for error in error_catalogue.look_up(words)] == [0x21]


def test_the_page_has_every_error() -> None:
    page = error_catalogue.as_markdown()
    for error in error_catalogue.known_errors():
        assert f"**{error.id}**" in page
        assert error.fix in page
