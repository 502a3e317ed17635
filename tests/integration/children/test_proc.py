"""Child processes: what they print, how they end, and that none is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ethosu_sdk.base import proc
from ethosu_sdk.base.errors import BuildError, SimulationError, ToolError

_PATIENCE_S = 10.0


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_gone(pid: int) -> bool:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if not is_running(pid):
            return True
        time.sleep(0.02)
    return False


def test_output_and_status_are_returned_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    result = proc.run(
        [sys.executable, "-c", "print('one'); import sys; print('two', file=sys.stderr)"],
        timeout_s=30,
        log=log,
    )
    assert sorted(result.output.split()) == ["one", "two"]
    assert result.returncode == 0
    assert log.read_text().startswith("$ ")
    assert "two" in log.read_text()


def test_a_failure_carries_the_last_lines_and_the_command() -> None:
    code = "import sys; [print('line', i) for i in range(100)]; sys.exit(3)"
    with pytest.raises(BuildError, match="exit status 3") as caught:
        proc.run([sys.executable, "-c", code], timeout_s=30)
    assert "line 99" in caught.value.message
    assert "line 59" not in caught.value.message.split()
    assert "line 60" in caught.value.message
    assert "range(100)" in caught.value.hint


@pytest.mark.parametrize(
    ("argv", "message"),
    [(["false"], "false failed with exit status 1"), (["sleep", "9"], "sleep did not end within 0.5 s")],
)
def test_the_error_of_a_silent_process_is_one_line(argv: list[str], message: str) -> None:
    with pytest.raises(SimulationError) as caught:
        proc.run(argv, timeout_s=0.5, error=SimulationError)
    assert caught.value.message == message


def test_a_time_out_kills_the_whole_group() -> None:
    code = (
        "import subprocess, sys, time; c = subprocess.Popen(['sleep', '600']); "
        "print(c.pid, flush=True); time.sleep(600)"
    )
    with pytest.raises(SimulationError, match="did not end within 1 s") as caught:
        proc.run([sys.executable, "-c", code], timeout_s=1, error=SimulationError)
    grandchild = int(caught.value.message.splitlines()[-1])
    assert wait_gone(grandchild)


def test_a_child_dies_with_a_killed_parent() -> None:
    code = (
        "import time\nfrom ethosu_sdk.base import proc\n"
        "with proc.spawn(['sleep', '600']) as child:\n"
        "    print(child.pid, flush=True)\n    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_gone(child)


def test_a_child_is_killed_when_the_block_raises() -> None:
    with pytest.raises(RuntimeError), proc.spawn(["sleep", "600"]) as child:
        raise RuntimeError
    assert not is_running(child.pid)


def test_a_missing_program_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="could not start"):
        proc.run(["/no/such/program"], timeout_s=1)
    with pytest.raises(ToolError, match="not found on PATH") as caught:
        proc.find_tool("no-such-program", hint="install it")
    assert caught.value.hint == "install it"


def test_a_child_has_no_terminal_input() -> None:
    code = "import sys; print(repr(sys.stdin.read()))"
    assert proc.run([sys.executable, "-c", code], timeout_s=30).output.strip() == "''"


def test_a_child_leads_its_own_group() -> None:
    with proc.spawn(["sleep", "600"]) as child:
        assert os.getpgid(child.pid) == child.pid
