"""Completion as the shells ask for it: the variables of their scripts, in a fresh process."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.aot import zoo
from ethosu_sdk.boards import BOARDS, profiles
from ethosu_sdk.installation.fvp.options import LAYOUT_CHOICES, SANDBOX_CHOICES
from ethosu_sdk.program_options import IO_CHOICES, QUANTIZE_CHOICES, QUANTIZE_PER_CHOICES
from ethosu_sdk.simulators import events
from ethosu_sdk.steps.run.options import SIMULATORS
from ethosu_sdk.targets import families, target_names
from tests import processes
from tests.integration.cli import COMMAND, sdk, sdk_ok

ZOO = [f"zoo:{name}" for name in zoo.names()]
CPU_LIMIT_S = 0.6  # 0.17 to 0.24 on a busy machine; with NumPy, torch or the checker of values it is more


def in_bash(words: list[str], folder: Path) -> list[str]:
    """The completions of the last of `words`, as bash's own array and index have them."""
    env = {
        "_ETHOSU_SDK_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["ethosu-sdk", *words]),
        "COMP_CWORD": str(len(words)),
    }
    outcome = sdk(cwd=folder, env=env)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("net.py", "net.pt2", "net.pte", "our.toml", "notes.txt", ".hidden.py"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.py").touch()
    return tmp_path


def names(npu: str) -> list[str]:
    return [row.name for row in events(npu).values()]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["comp"], ["compare", "compile"]),
        (["compile", ""], [*ZOO, "net.pt2", "net.pte", "net.py", "sub/"]),
        (["compile", "n"], ["net.pt2", "net.pte", "net.py"]),
        (["compile", "sub/"], ["sub/deep.py"]),
        (["build", ""], ["net.pte", "sub/"]),
        (["build", "s"], []),  # folders alone: the shell goes on into them
        # bash cuts words at the colon, and wants what follows it
        (["run", "zoo", ":", "mob"], ["mobilenet_v2", "mobilenet_v1_025"]),
        (["run", "zoo", ":"], list(zoo.names())),
        (["run", "zoo:mob"], ["zoo:mobilenet_v2", "zoo:mobilenet_v1_025"]),  # COMP_WORDBREAKS without it
        (["run", "zoo", ":", "add", "--target", ""], list(target_names())),
        (["run", "x.pte", "--target", "=", "ethos-u65"], ["ethos-u65-256", "ethos-u65-512"]),
        (["run", "x.pte", "--target", "="], list(target_names())),
        (
            ["compile", "net.py", "--target", "ethos-u85-256", "--system-config", ""],
            list(families()["ethos-u85"].system_configs),
        ),
        (["compile", "net.py", "--memory-mode", ""], ["Sram_Only", "Shared_Sram"]),
        (["compile", "net.py", "--system", "alif-e3"], ["alif-e3-hp", "alif-e3-he"]),
        (["compile", "net.py", "--system", "our"], ["our.toml"]),
        (["run", "net.py", "--system", ""], [*profiles.names(), "our.toml", "sub/"]),
        (["boards", "imx"], ["imx93"]),
        (["compile", "net.py", "--system", "alif-e8-he-u85", "--target", ""], ["ethos-u85-256"]),
        (["compile", "net.py", "--system", "alif-e3-he", "--memory-mode", ""], ["Sram_Only", "Shared_Sram"]),
        (
            ["compile", "net.py", "--system", "alif-e3-he", "--system-config", ""],
            ["RTSS_HE_SRAM_MRAM", "RTSS_HE_SRAM_Only", "RTSS_HE_DTCM_Only"],
        ),
        (["run", "net.py", "--system", "imx93", "--events", ""], names("ethos-u65")),
        (
            ["compile", "net.py", "--target=ethos-u65-256", "--memory-mode", "Ded"],
            [f"Dedicated_Sram{size}" for size in ("", "_256KB", "_384KB", "_512KB")],
        ),
        (
            [
                *("compile", "net.py", "--target", "ethos-u65-256"),
                *("--system-config", "Ethos_U65_Embedded", "--memory-mode", ""),
            ],
            ["Sram_Only", "Shared_Sram"],
        ),
        (["run", "net.pte", "--simulator", ""], list(SIMULATORS)),
        (["run", "net.pte", "--board", ""], list(BOARDS)),
        (["compile", "net.py", "--quantize", ""], list(QUANTIZE_CHOICES)),
        (["compile", "net.py", "--quantize-per", ""], list(QUANTIZE_PER_CHOICES)),
        (["compile", "net.py", "--io", ""], list(IO_CHOICES)),
        (["run", "net.py", "--events", ""], names("ethos-u55")),
        (["run", "net.py", "--target", "ethos-u85-256", "--events", ""], names("ethos-u85")),
        (["run", "net.pte", "--events", ""], list(dict.fromkeys(names("ethos-u55") + names("ethos-u85")))),
        (["run", "net.py", "--events", "MAC_ACTIVE,MAC_ACTIVE_8"], ["MAC_ACTIVE,MAC_ACTIVE_8BIT"]),
        (["fvp", "install", "corstone-32"], ["corstone-320"]),
        (["fvp", "install", "corstone-320", "--sandbox", ""], list(SANDBOX_CHOICES)),
        (["fvp", "install-launchers", "bin", "--layout", ""], list(LAYOUT_CHOICES)),
        (["run", "--simul"], ["--simulator", "--simulated-limit"]),
    ],
    ids=lambda value: " ".join(value) if value and len(value) < 10 else None,
)
def test_what_bash_is_offered(words: list[str], offered: list[str], folder: Path) -> None:
    assert sorted(in_bash(words, folder)) == sorted(offered)


def test_bash_itself_completes_a_model_with_its_colon(folder: Path) -> None:
    """Its script in a real bash, with its usual COMP_WORDBREAKS."""
    script = sdk(cwd=folder, env={"_ETHOSU_SDK_COMPLETE": "source_bash"})
    words = "COMP_WORDS=(ethosu-sdk run zoo : mtcnn_o); COMP_CWORD=4"
    driver = f'{words}\n_ethosu_sdk_completion ethosu-sdk\necho "${{COMPREPLY[@]}}"'
    done = processes.run(
        ["bash", "--norc", "-c", f"{script.out}\n{driver}"],
        env={"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
        check=True,
    )
    assert done.stdout.split() == ["mtcnn_onet"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_offered_the_same(shell: str, folder: Path) -> None:
    """Their scripts hand the line as one text; zsh gets its colons escaped."""
    env = {
        "_ETHOSU_SDK_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "ethosu-sdk run zoo:mob",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    outcome = sdk_ok(cwd=folder, env=env)
    offered = outcome.out.replace("\\", "").replace('"', " ").split()
    assert {"zoo:mobilenet_v2", "zoo:mobilenet_v1_025"} <= set(offered)
    assert "zoo:add" not in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str, tmp_path: Path) -> None:
    outcome = sdk_ok(cwd=tmp_path, env={"_ETHOSU_SDK_COMPLETE": f"source_{shell}"})
    assert f"_ETHOSU_SDK_COMPLETE=complete_{shell}" in outcome.out


def test_completion_is_quick(tmp_path: Path) -> None:
    """It imports neither NumPy, torch nor what checks values; that is looked at, as time is the machine's."""
    code = (
        "import sys, json, atexit; "
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr)); "
        "from ethosu_sdk.cli import main; main()"
    )
    env = {
        **os.environ,
        "_ETHOSU_SDK_COMPLETE": "complete_bash",
        "COMP_WORDS": "ethosu-sdk run net.py --events MAC",
        "COMP_CWORD": "4",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "MAC_ACTIVE" in done.stdout.split()
    assert not {"numpy", "torch", "executorch", "pydantic", "rich"} & set(json.loads(done.stderr))
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_LIMIT_S
