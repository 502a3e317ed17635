"""Output that cannot be written, names that no file system takes, locales without UTF-8: exit codes stay right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.integration.cli import COMMAND, sdk
from tests.integration.terminal.stream_cases import ALL_CLOSED, CLOSED, FULL, GONE, NO_STDERR
from tests.places import ROOT

PTE = str(ROOT / "tests" / "golden" / "pte" / "add_u55.pte")
LOG = str(ROOT / "tests" / "golden" / "logs" / "mobilenet_v2_sram_only_pmu.log")
RECORD = str(ROOT / "schemas" / "examples" / "valid" / "run-ds_cnn.json")
LONG = "n" * 300
NOISE = ("Traceback", "Exception ignored", "internal error", "UnicodeEncodeError")

# Words → exit code with streams that work. With --json everything that has a record prints it to stdout.
COMMANDS: dict[tuple[str, ...], int] = {
    ("--help",): 0,
    ("--version",): 0,
    ("run", "--help"): 0,
    ("zoo",): 0,
    ("zoo", "--json"): 0,
    ("inspect", PTE, "--commands"): 0,
    ("inspect", PTE, "--json"): 0,
    ("validate", RECORD): 0,
    ("validate", RECORD, "--json"): 0,
    ("summary", RECORD): 0,
    ("explain",): 0,
    ("explain", "--markdown"): 0,
    ("explain", "0x12", "--json"): 0,
    ("parse-log", LOG): 7,  # it is cut
    ("parse-log", LOG, "--json"): 7,
    ("build", "missing.pte"): 3,
    ("build", "missing.pte", "--json"): 3,
    ("run", "missing.pte", "--json"): 3,
    ("compile", "missing.py", "--json"): 3,
    ("verify", "missing.json"): 3,
    ("zoo", "--no-such-option"): 2,
    ("fvp", "install", "corstone-300"): 2,
    # Names of 300 characters: no file system takes them.
    ("build", f"{LONG}.pte"): 3,
    ("run", f"{LONG}.pte"): 3,
    ("inspect", f"{LONG}.pte"): 3,
    ("validate", f"{LONG}.json"): 3,
    ("verify", f"{LONG}.json"): 3,
    ("summary", f"{LONG}.json"): 3,
    ("parse-log", LONG): 3,
    ("compile", f"{LONG}.py"): 3,
    ("compile", f"{LONG}.pt2"): 3,
    ("compile", f"zoo:{LONG}"): 2,
    ("compile", "zoo:add", "-o", LONG): 5,
    ("compile", "zoo:add", "-o", "out", "--inputs", f"{LONG}.npz"): 3,
    ("build", PTE, "-o", LONG): 5,
    ("run", PTE, "-o", LONG): 5,
    ("run", PTE, "-o", "out", "--inputs", f"{LONG}.npz"): 3,
    ("fvp", "install-launchers", LONG): 3,
    ("fvp", "install", "corstone-300", "--accept-eula", "--archive", LONG): 3,
    ("sbom", "-o", f"{LONG}.json"): 5,
}
SHARED = (CLOSED, NO_STDERR, ALL_CLOSED)  # each is tried on a share of the commands: they are much alike
CONDITIONS = ("", FULL, GONE, CLOSED, NO_STDERR, ALL_CLOSED)


def expected(words: tuple[str, ...], code: int, condition: str) -> int:
    """Output that is lost is an error where there is no other; that nobody wants it is none."""
    return 5 if condition == FULL and code == 0 else code


@pytest.mark.parametrize("condition", CONDITIONS)
def test_streams_that_do_not_work_change_no_verdict(condition: str, tmp_path: Path) -> None:
    # Without a condition those with long names, else the others.
    chosen = [words for words in COMMANDS if (LONG in "".join(words)) == (condition == "")]
    if condition in SHARED:
        chosen = chosen[SHARED.index(condition) :: len(SHARED)]
    cases = json.dumps([(words, condition) for words in chosen])
    done = processes.run(
        [sys.executable, "-m", "tests.integration.terminal.stream_cases", cases],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    for words, (code, said) in zip(chosen, json.loads(done.stdout), strict=True):
        shown = " ".join(word[:40] for word in words)
        assert code == expected(words, COMMANDS[words], condition), (shown, said)
        assert not [word for word in NOISE if word in said], (shown, said)
        if condition == FULL and COMMANDS[words] == 0:
            assert "cannot write to standard output: No space left on device" in said


@pytest.mark.parametrize(
    ("redirection", "code"), [("| head -c 1", 0), (">&-", 0), (">&- 2>&- <&-", 0), ("> /dev/full", 5)]
)
def test_the_same_in_a_shell(redirection: str, code: int, tmp_path: Path) -> None:
    """The whole way, from Python's own start to its end."""
    done = processes.run(
        ["bash", "-c", f"set -o pipefail; '{COMMAND}' inspect '{PTE}' --commands --json {redirection}"],
        cwd=tmp_path,
    )
    assert (done.returncode, [word for word in NOISE if word in done.stderr]) == (code, []), done.stderr


def test_a_failed_verdict_is_one_without_a_reader(tmp_path: Path) -> None:
    """`parse-log … | head -c 0` of a log that tells of a failure must not be green."""
    words = f"set -o pipefail; '{COMMAND}' parse-log '{LOG}' | true"
    assert (
        subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, check=False).returncode == 7
    )


def test_a_locale_without_utf8(tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "größe.pte").write_bytes(Path(PTE).read_bytes())
    for words, code in (
        (("inspect", "größe.pte"), 0),
        (("build", "größer.pte"), 3),
        (("zoo",), 0),
        (("summary", RECORD), 0),
    ):
        done = sdk(*words, cwd=tmp_path, env=plain)
        assert done.code == code, done.err
        assert not [word for word in NOISE if word in done.err]
        assert (done.out + done.err).isascii()


@pytest.mark.parametrize(("mask", "mode", "program"), [(0o027, 0o640, 0o750), (0o002, 0o664, 0o775)])
def test_the_users_mask_holds(mask: int, mode: int, program: int, tmp_path: Path) -> None:
    for words in (("sbom", "-o", "sbom.json"), ("fvp", "install-launchers", "bin")):
        done = subprocess.run(
            [COMMAND, *words, "-q"], cwd=tmp_path, umask=mask, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "sbom.json").stat().st_mode & 0o777 == mode
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "bin").iterdir()} == {program}


@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_limit_on_the_size_of_files_is_named(tmp_path: Path) -> None:
    assert sdk("run", PTE, "-o", "out", cwd=tmp_path).code == 0  # the firmware is in the cache now
    limited = ["bash", "-c", 'ulimit -f 4000; exec "$@"', "bash", str(COMMAND), "run", PTE, "-o", "out"]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 6, done.stderr
    assert "error: cannot allocate the 2,147,483,648 bytes of the board's DDR" in done.stderr
    assert "hint: file sizes are limited: `ulimit -f unlimited`" in done.stderr
