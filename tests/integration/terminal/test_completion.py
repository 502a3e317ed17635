"""Completion as the shells ask for it: the variables of their scripts, in a fresh process."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.boards import BOARD_NAMES
from ethosu_sdk.base.targets import families, target_names
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.program_options import IO_CHOICES, QUANTIZE_CHOICES, QUANTIZE_PER_CHOICES
from ethosu_sdk.installation.options import LAYOUT_CHOICES
from ethosu_sdk.run.options import SIMULATORS
from tests import processes
from tests.integration.cli import COMMAND, sdk, sdk_ok

ZOO = [f"zoo:{name}" for name in zoo.names()]
CPU_LIMIT_S = 0.8  # 0.3 on an idle machine; with NumPy or torch it is more


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


ALL = list(families().values())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["comp"], ["compare", "compile"]),
        (["compile", ""], ZOO),
        (["compile", "n"], []),  # the shell completes files where nothing is offered
        (["build", ""], []),
        # bash cuts words at the colon, and wants what follows it
        (["run", "zoo", ":", "mob"], ["mobilenet_v2", "mobilenet_v1_025"]),
        (["run", "zoo", ":"], list(zoo.names())),
        (["run", "zoo:mob"], ["zoo:mobilenet_v2", "zoo:mobilenet_v1_025"]),  # COMP_WORDBREAKS without it
        (["run", "zoo", ":", "add", "--target", ""], list(target_names())),
        (["run", "x.pte", "--target=ethos-u65"], ["ethos-u65-256", "ethos-u65-512"]),
        (["compile", "net.py", "--system-config", ""], [name for row in ALL for name in row.system_configs]),
        (
            ["compile", "net.py", "--memory-mode", "Ded"],
            [f"Dedicated_Sram{size}" for size in ("", "_256KB", "_384KB", "_512KB")],
        ),
        (["compile", "net.py", "--system", "alif-e3"], ["alif-e3-hp", "alif-e3-he"]),
        (["run", "net.py", "--system", ""], list(board_profiles.profile_names())),
        (["boards", "imx"], ["imx93"]),
        (["run", "net.pte", "--simulator", ""], list(SIMULATORS)),
        (["run", "net.pte", "--board", ""], list(BOARD_NAMES)),
        (["compile", "net.py", "--quantize", ""], list(QUANTIZE_CHOICES)),
        (["compile", "net.py", "--quantize-per", ""], list(QUANTIZE_PER_CHOICES)),
        (["compile", "net.py", "--io", ""], list(IO_CHOICES)),
        (["fvp", "install", "corstone-32"], ["corstone-320"]),
        (["fvp", "install-launchers", "bin", "--layout", ""], list(LAYOUT_CHOICES)),
        (["run", "--simul"], ["--simulator", "--simulated-limit"]),
    ],
    ids=lambda value: " ".join(value) if value and len(value) < 10 else None,
)
def test_what_bash_is_offered(words: list[str], offered: list[str], tmp_path: Path) -> None:
    assert sorted(in_bash(words, tmp_path)) == sorted(offered)


def test_bash_itself_completes_a_model_with_its_colon(tmp_path: Path) -> None:
    """Its script in a real bash, with its usual COMP_WORDBREAKS."""
    script = sdk(cwd=tmp_path, env={"_ETHOSU_SDK_COMPLETE": "source_bash"})
    words = "COMP_WORDS=(ethosu-sdk run zoo : mtcnn_o); COMP_CWORD=4"
    driver = f'{words}\n_ethosu_sdk_completion ethosu-sdk\necho "${{COMPREPLY[@]}}"'
    done = processes.run(
        ["bash", "--norc", "-c", f"{script.out}\n{driver}"],
        env={"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
        check=True,
    )
    assert done.stdout.split() == ["mtcnn_onet"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_offered_the_same(shell: str, tmp_path: Path) -> None:
    """Their scripts hand the line as one text; zsh gets its colons escaped."""
    env = {
        "_ETHOSU_SDK_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "ethosu-sdk run zoo:mob",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    outcome = sdk_ok(cwd=tmp_path, env=env)
    offered = outcome.out.replace("\\", "").replace('"', " ").split()
    assert {"zoo:mobilenet_v2", "zoo:mobilenet_v1_025"} <= set(offered)
    assert "zoo:add" not in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str, tmp_path: Path) -> None:
    outcome = sdk_ok(cwd=tmp_path, env={"_ETHOSU_SDK_COMPLETE": f"source_{shell}"})
    assert f"_ETHOSU_SDK_COMPLETE=complete_{shell}" in outcome.out


def test_completion_is_quick(tmp_path: Path) -> None:
    """It imports neither NumPy nor torch; that is looked at, as time is the machine's."""
    code = (
        "import sys, json, atexit; "
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr)); "
        "from ethosu_sdk.cli import main; main()"
    )
    env = {
        **os.environ,
        "_ETHOSU_SDK_COMPLETE": "complete_bash",
        "COMP_WORDS": "ethosu-sdk run net.py --target ethos",
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
    assert "ethos-u55-128" in done.stdout.split()
    assert not {"numpy", "torch", "executorch", "rich"} & set(json.loads(done.stderr))
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_LIMIT_S
