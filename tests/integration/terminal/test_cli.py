"""The command line: help, typos, exit codes, records on stdout, and no traceback ever."""

import json
from pathlib import Path

import pytest

from ethosu_sdk.records import validation
from tests import processes
from tests.integration.cli import assert_clear, sdk
from tests.places import GOLDEN_PTE

COMMANDS = ("compile", "build", "run", "inspect", "doctor", "validate", "verify", "summary", "sbom")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    outcome = sdk(command, "--help", cwd=tmp_path)
    assert outcome.code == 0
    assert "Usage" in outcome.out


def test_without_arguments_the_help_is_shown(tmp_path: Path) -> None:
    outcome = sdk(cwd=tmp_path)
    assert outcome.code == 2
    assert all(name in outcome.out + outcome.err for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["rnu", "x.pte"], "run"),
        (["run", "x.pte", "--tagret", "y"], "--target"),
        (["compile", "zoo:digit_cnn"], "digits_cnn"),
        (["compile", "zoo:add", "--target", "ethos-u55-182"], "ethos-u55-128"),
        (["compile", "zoo:add", "--target", "Ethos-U55-128"], "ethos-u55-128"),
        (
            ["compile", "zoo:add", "--system-config", "Ethos_U55_High_End"],
            "Ethos_U55_High_End_Embedded",
        ),
        (["compile", "zoo:add", "--memory-mode", "Shared"], "Shared_Sram"),
        (["run", "zoo:add", "--simulator", "qmeu"], "qemu"),
    ],
)
def test_a_typo_gets_a_suggestion(arguments: list[str], suggested: str, tmp_path: Path) -> None:
    assert_clear(sdk(*arguments, cwd=tmp_path), 2, suggested)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["build", "run", "inspect"])
def test_a_missing_pte_is_bad_input(command: str, tmp_path: Path) -> None:
    assert_clear(sdk(command, "missing.pte", cwd=tmp_path), 3, "missing.pte")


@pytest.mark.parametrize("command", ["build", "run", "inspect"])
def test_a_file_that_is_no_program_is_bad_input(command: str, tmp_path: Path) -> None:
    (tmp_path / "text.pte").write_text("this is not a program")
    assert_clear(sdk(command, "text.pte", cwd=tmp_path), 3, "text.pte")


def test_an_error_is_a_record_with_json(tmp_path: Path) -> None:
    outcome = sdk("inspect", "missing.pte", "--json", cwd=tmp_path)
    record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    assert (record["schema"], record["error"]["exit_code"]) == ("error/1", 3)


def test_a_missing_toolchain_is_named(tmp_path: Path) -> None:
    outcome = sdk("build", GOLDEN_PTE / "softmax.pte", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert_clear(outcome, 4, "arm-none-eabi-g++", "apt-get install")


def test_validate_names_the_member(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "error/1", "status": "fine"}')
    assert_clear(sdk("validate", "a.json", cwd=tmp_path), 3, "/status")


def test_a_closed_reader_is_no_error(tmp_path: Path) -> None:
    import subprocess

    from tests.integration.cli import COMMAND

    shell = f"'{COMMAND}' sbom | head -c 1"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_build_run_and_inspect_need_no_torch(tmp_path: Path) -> None:
    """A ready `.pte` needs neither torch nor ExecuTorch's Python code: importing them fails here.

    Nor do plain values of options need pydantic, whose import is a sixth of the time of such a command.
    """
    import sys

    names = ("torch", "torchao", "executorch.exir", "sklearn", "pydantic")
    blocked = f"import sys; sys.modules.update(dict.fromkeys({names}))"
    for arguments in (
        ["inspect", str(GOLDEN_PTE / "softmax.pte")],
        ["run", str(GOLDEN_PTE / "softmax.pte"), "-q"],
    ):
        code = f"{blocked}; sys.argv[1:] = {arguments!r}; from ethosu_sdk.cli import main; main()"
        done = processes.run([sys.executable, "-c", code], cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_damaged_program_is_not_to_be_run_again(tmp_path: Path) -> None:
    (tmp_path / "junk.pte").write_text("junk")
    done = sdk("run", "junk.pte", cwd=tmp_path)
    assert (done.code, "run junk.pte" in done.err) == (3, False)
    assert "hint: it is damaged, or something else" in done.err
    assert "`ethosu-sdk compile` makes one" in done.err


@pytest.mark.parametrize(
    ("board", "hint"), [("corstone-3200", "corstone-320"), ("corstone-320", "--board corstone-300")]
)
def test_a_board_that_cannot_be_is_refused_before_compiling(board: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("raise SystemExit('compiled')\n")
    assert_clear(sdk("run", "net.py", "--target", "ethos-u55-128", "--board", board, cwd=tmp_path), 2, hint)
    assert not (tmp_path / "build").exists()
