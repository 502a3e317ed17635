"""Nothing survives a killed command, wherever its processes went; and from its first import on it ends with 130.

`python -m tests.integration.children.kills` does the same at random moments, with compilers and QEMU.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import filesystem
from tests.integration.children import kills
from tests.integration.cli import COMMAND, sdk
from tests.places import GOLDEN_PTE

# As Ninja does it, each compiler in a group of its own; and as worse programs do, that leave session and parent.
TREE = """
import os, subprocess, sys, time
from ethosu_sdk.base import interrupts, proc
words = ["sh", "-c", "setsid sh -c 'sleep 61 & echo a; sleep 62' & (sleep 63 &) ; exec sleep 64"]
code = "import subprocess, time; subprocess.Popen(%r, process_group=0); print('up', flush=True); time.sleep(65)"
code %= words
def command():
    with proc.spawn([sys.executable, "-c", code], stdout=None) as child:
        child.wait()
    return 0
sys.exit(interrupts.run(command))
"""
ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


@pytest.mark.parametrize("number", ENDS)
def test_no_grandchild_survives(number: signal.Signals, tmp_path: Path) -> None:
    killed = kills.kill(kills.Command((sys.executable, "-c", TREE), tmp_path), number, 2.0)
    assert "up" in killed.said
    assert (killed.problems(), killed.finished()) == ([], False)


def test_a_failed_build_leaves_no_compiler(tmp_path: Path) -> None:
    """A time-out is no kill of the SDK: what the program started must go all the same."""
    code = TREE.replace("child.wait()", "time.sleep(1)")
    killed = kills.kill(kills.Command((sys.executable, "-c", code), tmp_path), signal.SIGKILL, 20.0)
    assert (killed.code, killed.survivors) == (0, ())


def test_a_lock_outlives_the_sdk_as_long_as_a_compiler_does(tmp_path: Path) -> None:
    """Who works in the folder next must not meet the last writes of a compiler that is being killed."""
    code = (
        "import os, signal, pathlib\nfrom ethosu_sdk.base import filesystem, proc\n"
        "with filesystem.locked_folder(pathlib.Path('out')), proc.spawn(['sleep', '60']) as child:\n"
        "    print(child.pid, flush=True)\n"
        "    os.kill(child.pid, signal.SIGSTOP)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    supervisor = int(done.stdout)
    waiting = (
        "import pathlib\nfrom ethosu_sdk.base import filesystem\n"
        "with filesystem.locked_folder(pathlib.Path('out')): pass"
    )
    with subprocess.Popen([sys.executable, "-c", waiting], cwd=tmp_path) as other:
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1.5)
        os.kill(supervisor, signal.SIGCONT)
        assert other.wait(20) == 0


@pytest.mark.parametrize("number", ENDS[:3])
def test_a_signal_during_the_imports_leaves_no_traceback(number: signal.Signals, tmp_path: Path) -> None:
    """Moments from the first import of the package on; before them Python itself starts."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, signal\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == os.environ['AT']:\n"
        f"            os.kill(os.getpid(), {number})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    for module in (
        "ethosu_sdk.cli",
        "typer",
        "rich.console",
        "ethosu_sdk.analysis.inspect_command",
        "msgspec",
    ):
        env = {"PYTHONPATH": str(tmp_path), "AT": module}
        words = ("inspect", GOLDEN_PTE / "add_u55.pte", "--json")
        done = sdk(*words, cwd=tmp_path, env=env)
        assert (done.code, done.out, done.err.strip()) == (130, "", "interrupted"), module


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    words = ("bash", "-c", f"trap '' HUP; '{COMMAND}' zoo & sleep 0.1; kill -HUP $!; wait $!")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "mobilenet" in done.stdout) == (0, True), done.stderr


def test_folders_that_a_killed_command_left_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".work-dead").mkdir()
    (tmp_path / ".work-dead" / "file").write_text("x")
    with filesystem.temporary_directory(".work-", tmp_path) as first:
        with filesystem.temporary_directory(".work-", tmp_path) as second:
            assert {first, second} == set(tmp_path.iterdir())  # one in use is not taken for abandoned
        assert [first] == list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
