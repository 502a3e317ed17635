"""The FVP's command line, and the parting of its output."""

from pathlib import Path

import pytest

from ethosu_sdk.base.errors import ToolError, UsageError
from ethosu_sdk.program.protocol import RECORD_PREFIX
from ethosu_sdk.simulate import fvp_models, fvp_simulator
from ethosu_sdk.simulate.fvp_models import FvpRun, fvp_argv
from tests.places import GOLDEN_LOGS

ELF = Path("/firmware.elf")
U55, U65, U85 = (
    "FVP_Corstone_SSE-300_Ethos-U55",
    "FVP_Corstone_SSE-300_Ethos-U65",
    "FVP_Corstone_SSE-320",
)


def parameters(program: str, run: FvpRun) -> dict[str, str]:
    words = fvp_argv(program, fvp_models.models_by_program()[program], run)
    assert words[0] == program
    pairs = [words[i + 1].partition("=") for i, word in enumerate(words) if word == "-C"]
    assert len({name for name, _, _ in pairs}) == len(pairs)
    return {name: value for name, _, value in pairs}


# The lines that ExecuTorch's and Zephyr's own scripts start the models with.
@pytest.mark.parametrize(("program", "macs"), [(U55, 128), (U65, 512)])
def test_sse_300(program: str, macs: int) -> None:
    assert (
        parameters(program, FvpRun(ELF, macs)).items()
        >= {
            "ethosu.num_macs": str(macs),
            "mps3_board.visualisation.disable-visualisation": "1",
            **{f"mps3_board.telnetterminal{number}.start_telnet": "0" for number in (0, 1, 2, 5)},
            "mps3_board.uart0.out_file": "-",
            "mps3_board.uart0.unbuffered_output": "1",
            "mps3_board.uart0.shutdown_on_eot": "1",
            "cpu0.semihosting-enable": "1",
            "cpu0.semihosting-stack_base": "0",
            "cpu0.semihosting-heap_limit": "0",
        }.items()
    )


def test_sse_320() -> None:
    run = FvpRun(
        ELF, 256, fast=True, semihosting_folder=Path("/work"), semihosting_arguments=("a.out", "-m", "p.pte")
    )
    assert parameters(U85, run) == {
        "mps4_board.subsystem.ethosu.num_macs": "256",
        "mps4_board.subsystem.ethosu.extra_args": "--fast",
        "mps4_board.visualisation.disable-visualisation": "1",
        "vis_hdlcd.disable_visualisation": "1",
        **{f"mps4_board.telnetterminal{number}.start_telnet": "0" for number in (0, 1, 2, 5)},
        "mps4_board.uart0.out_file": "-",
        "mps4_board.uart0.unbuffered_output": "1",
        "mps4_board.uart0.shutdown_on_eot": "1",
        "mps4_board.subsystem.cpu0.semihosting-enable": "1",
        "mps4_board.subsystem.cpu0.semihosting-stack_base": "0",
        "mps4_board.subsystem.cpu0.semihosting-heap_limit": "0",
        "mps4_board.subsystem.cpu0.semihosting-cwd": "/work",
        "mps4_board.subsystem.cpu0.semihosting-cmd_line": "a.out -m p.pte",
    }


def test_data_and_limits_and_a_line_that_would_be_cut() -> None:
    run = FvpRun(ELF, 128, data=((Path("/image.bin"), 0x70002FA0),), time_limit_s=1.5, simulated_limit_s=2.5)
    words = fvp_argv(U55, fvp_models.models_by_program()[U55], run)
    tail = ("-a", "/firmware.elf", "--data", "/image.bin@0x70002fa0", "--timelimit", "2", "--simlimit", "2.5")
    assert words[-len(tail) :] == tail
    run = FvpRun(ELF, 128, semihosting_arguments=("executor_runner", "x" * 256))
    with pytest.raises(UsageError, match="characters"):
        fvp_argv(U55, fvp_models.models_by_program()[U55], run)


@pytest.mark.parametrize(("program", "macs"), [(U55, 512), (U65, 128), (U85, 64)])
def test_macs_that_an_npu_does_not_have_are_refused(program: str, macs: int) -> None:
    with pytest.raises(UsageError, match=f"no {macs} MACs"):
        fvp_argv(program, fvp_models.models_by_program()[program], FvpRun(ELF, macs))


def test_the_fvps_own_lines_are_parted_from_the_firmwares() -> None:
    parted = fvp_models.parted_output((GOLDEN_LOGS / "add_zephyr_fvp_2025.log").read_bytes())
    uart = parted.uart.decode()
    assert "Setup Method allocator pool. Size: 512 bytes." in uart
    assert not any(word in uart for word in ("telnet", "Ethos-U rev", "COPYRIGHT", "xterm", "Simulation"))
    assert [error.id for error in parted.errors] == ["fvp-simulated-time-limit"]
    assert len(parted.failures) == 1


def test_statistics_and_records_are_whose_they_are() -> None:
    parted = fvp_models.parted_output(
        b"hello\n--- cpu_core statistics: ---\nSimulated time : 24.000000s\nE: not a line of UART\n"
    )
    assert parted.uart == b"hello\n"
    line = f'{RECORD_PREFIX} 3 error {{"code":"bus_status","detail":"Hard fault"}} 1 00000000\n'.encode()
    assert fvp_models.parted_output(line) == fvp_models.FvpOutput(line, (), (), ())


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_fvp_is_found_below_its_folder_before_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fvp_models.models_by_program()[U55]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv(fvp_simulator.FVP_VARIABLE, raising=False)
    with pytest.raises(ToolError, match="was not found on PATH") as missing:
        fvp_simulator.find_fvp(model)
    assert "ethosu-sdk fvp install corstone-300" in missing.value.hint
    installed = executable(tmp_path / "data/ethosu-sdk/fvp/corstone-300/1.2/models/Linux64_GCC-9.3" / U55, "")
    assert fvp_simulator.find_fvp(model) == installed
    on_path = executable(tmp_path / "path" / U55, "")
    assert fvp_simulator.find_fvp(model) == on_path
    below = executable(tmp_path / "arm/models/Linux64_GCC-9.3" / U55, "")
    monkeypatch.setenv(fvp_simulator.FVP_VARIABLE, str(tmp_path / "arm"))
    assert fvp_simulator.find_fvp(model) == below


def test_a_launcher_is_no_fvp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ethosu_sdk.installation import install_fvp

    executable(tmp_path / U55, install_fvp.launcher_script(U55))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(fvp_simulator.FVP_VARIABLE, raising=False)
    with pytest.raises(ToolError, match="not Arm's FVP"):
        fvp_simulator.find_fvp(fvp_models.models_by_program()[U55])


def test_the_python_beside_an_fvp_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/before")
    program = executable(tmp_path / "models/Linux64_GCC-9.3" / U85, "")
    assert fvp_simulator.fvp_environment(program)["LD_LIBRARY_PATH"] == "/before"
    libraries = tmp_path / "python" / "lib"
    libraries.mkdir(parents=True)
    assert fvp_simulator.fvp_environment(program)["LD_LIBRARY_PATH"] == f"{libraries}:/before"
