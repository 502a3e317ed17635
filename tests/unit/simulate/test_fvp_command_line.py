"""The launchers' command line: what scripts for Arm's FVPs give them."""

import re
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.simulate import fvp_models
from ethosu_sdk.simulate.fvp_launcher.command_line import Dump, known_parameters, parse_options
from ethosu_sdk.simulate.fvp_models import FvpRun, fvp_argv
from ethosu_sdk.simulate.qemu.simulator import EndedByUart, EndMarks, named_system
from tests import installed
from tests.tables import each

MODELS = list(fvp_models.models_by_program().values())
U55 = fvp_models.models_by_program()["FVP_Corstone_SSE-300_Ethos-U55"]
U85 = fvp_models.models_by_program()["FVP_Corstone_SSE-320"]


@pytest.mark.parametrize(
    "words",
    [
        ["-C", "ethosu.num_macs=64", "-a", "fw.elf"],
        ["-Cethosu.num_macs=64", "-afw.elf"],
        ["--parameter", "ethosu.num_macs=0x40", "--application", "fw.elf"],
        ["--parameter=ethosu.num_macs='64'", "--application=cpu0=fw.elf"],
        ["-C", 'ethosu.num_macs="64"', "fw.elf"],
    ],
)
def test_every_spelling(words: list[str]) -> None:
    options = parse_options(words, U55)
    assert options.values == {"ethosu.num_macs": 64}
    assert options.elf == Path("fw.elf")


def test_limits_data_statistics_and_dumps() -> None:
    words = [
        "--timelimit",
        "120",
        "--simlimit",
        "3",
        "--cyclelimit=9",
        "--stat",
        "--data",
        "cpu0=m.pte@0x70000000",
        "f.elf",
    ]
    options = parse_options(words, U55)
    assert options.time_limit_s == 120.0
    assert options.unhonoured_limits == ("--simlimit", "--cyclelimit")
    assert options.data == ((Path("m.pte"), 0x70000000),)
    assert options.statistics
    words = ["--dump", "o,u@t.bin@0x93000000,0x40", "--dump=cpu0=b.bin@Secure:0x31000000,8", "f.elf"]
    assert parse_options(words, U55).dumps == (
        Dump(Path("o,u@t.bin"), 0x93000000, 0x40),
        Dump(Path("b.bin"), 0x31000000, 8),
    )


def test_a_configuration_file_is_read_or_named(tmp_path: Path) -> None:
    path = tmp_path / "fvp.txt"
    path.write_text(
        "# a comment\nethosu.num_macs=256 # (int) default = '0x80'\n\nmps3_board.uart0.out_file='-'\n"
    )
    options = parse_options(["-f", str(path), "fw.elf"], U55)
    assert options.values == {"ethosu.num_macs": 256, "mps3_board.uart0.out_file": "-"}
    with pytest.raises(InputError, match="configuration file"):
        parse_options(["-f", str(tmp_path / "none")], U55)


@each(
    ("words", "message"),
    [
        (["-C", "ethosu.nummacs=64"], "no parameter 'ethosu.nummacs'"),
        (["-C", "mps4_board.uart0.out_file=-"], "did you mean"),
        (["-C", "nothing.like.it=1"], "no parameter"),
        (["-C", "ethosu.num_macs"], "not NAME=VALUE"),
        (["-C", "ethosu.num_macs=many"], "is not of type integer"),
        (["-C", "mps3_board.uart0.shutdown_on_eot=2"], "is not of type boolean"),
        (["-C", "cpu0.INITSVTOR=0x20000000"], "out of range"),
        (["-C", "cpu0.semihosting-enable=0"], "out of range"),
        (["-C"], "needs a value"),
        (["--frobnicate"], "unknown option"),
        (["--timelimit", "soon", "f.elf"], "not a number"),
        (["--data", "f.bin", "f.elf"], "not FILE@ADDRESS"),
        (["a.elf", "b.elf"], "2 applications"),
    ],
)
def test_what_is_not_understood_is_reported(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_options(words, U55)
    assert message in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.program)
def test_launchers_take_what_the_sdk_gives_an_fvp(model: fvp_models.FvpModel) -> None:
    run = FvpRun(
        Path("f.elf"),
        model.default_macs,
        data=((Path("d"), 0x70000000),),
        time_limit_s=1,
        simulated_limit_s=1,
        fast=True,
        semihosting_folder=Path("/"),
        semihosting_arguments=("a", "b"),
    )
    options = parse_options(fvp_argv(model.program, model, run)[1:], model)
    assert options.values[model.parameter("macs")] == model.default_macs
    assert options.values[model.parameter("semihosting_command_line")] == "a b"


def test_launchers_know_every_parameter_that_executorchs_tests_use() -> None:
    caller = installed.folder("executorch") / "backends" / "arm" / "test" / "runner_utils.py"
    used = set(re.findall(r'"((?:mps[34]_board|cpu0|ethosu|vis_hdlcd)\.[\w.-]+)=', caller.read_text()))
    assert len(used) > 15
    known = set(known_parameters(U55)) | set(known_parameters(U85))
    assert used <= known


def test_marks_end_a_run_once_and_across_pieces() -> None:
    EndMarks(()).write(b"a\x04b")
    with pytest.raises(EndedByUart):
        EndMarks([b"\x04"]).write(b"a\x04")
    marks = EndMarks([b"EXITTHESIM"])
    marks.write(b"... EXITT")
    with pytest.raises(EndedByUart):
        marks.write(b"HESIM\n")
    assert marks.write(b"EXITTHESIM") == len("EXITTHESIM")


@each("text", ["f.bin@0x93000000", "f.bin@,4", "@0x1,4", "f.bin@1,0", "f.bin@1,-4", "f@1,x", ""])
def test_a_dump_without_file_address_or_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not FILE@ADDRESS,SIZE"):
        parse_options(["--dump", text, "f.elf"], U55)


def test_a_system_is_named_and_what_it_stands_for(tmp_path: Path) -> None:
    words = ["--vela-config", "b.ini", "--system-config=Board", "--memory-mode", "'Mine'", "f.elf"]
    options = parse_options(words, U55)
    assert (options.vela_config, options.system_config, options.memory_mode) == (
        Path("b.ini"),
        "Board",
        "Mine",
    )
    plain = parse_options(["f.elf"], U55)
    assert (plain.vela_config, plain.system_config, plain.memory_mode) == (None, None, None)
    ini = tmp_path / "b.ini"
    ini.write_text(
        "[System_Config.Board]\ncore_clock=3e8\naxi0_port=Sram\naxi1_port=Dram\nSram_clock_scale=1\n"
        "Dram_clock_scale=0.5\n[Memory_Mode.Mine]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"
    )
    assert named_system("ethos-u55", None, None, None) is None
    found = named_system("ethos-u55", ini, None, None)
    assert found is not None
    assert (found.name, found.memory_mode, found.clock_hz, found.source) == ("Board", "Mine", 3e8, "b.ini")
    deep = named_system("ethos-u55", None, "Ethos_U55_Deep_Embedded", None)
    assert deep is not None
    assert (deep.clock_hz, deep.memory_mode) == (200e6, "Shared_Sram")
    with pytest.raises(UsageError, match="no system configuration 'Boart'"):
        named_system("ethos-u55", ini, "Boart", None)
    with pytest.raises(UsageError, match="does not belong to ethos-u85"):
        named_system("ethos-u85", None, "Ethos_U55_Deep_Embedded", None)
    with pytest.raises(InputError, match="there is no file"):
        named_system("ethos-u55", tmp_path / "none.ini", None, None)
