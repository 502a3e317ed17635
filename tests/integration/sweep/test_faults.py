"""What goes wrong in a sweep: models that fail in every way, workers and commands that are killed, signals."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.sweep.sweeps import (
    SMALL,
    alive,
    by_cell,
    family,
    finished,
    listening,
    record,
    rows,
    start,
    sweep,
    wait_for,
    warm,
    write,
)

pytestmark = [pytest.mark.torch]

GOOD = "import torch\nmodel = torch.nn.Linear(4, 3)\nexample_inputs = (torch.ones(1, 4),)\n"
WRONG = "import torch\nmodel = torch.nn.Linear(5, 3)\nexample_inputs = (torch.ones(1, 4),)\n"
KILLER = """import os, signal
with open("attempts", "a") as file:
    file.write("x")
os.kill(os.getpid(), signal.SIGKILL)
"""
HUNGRY = "import time\nlarge = b'x' * (1 << 30)\ntime.sleep(600)\n"
SLOW = (
    "import subprocess, time\nsubprocess.Popen(['sleep', '612'], start_new_session=True)\ntime.sleep(600)\n"
)
INTERRUPTED = 130
ALONE = ("-j", "1")  # another process would import torch for nothing


def _models(folder: Path, models: dict[str, str], limits: str = "") -> Path:
    for name, text in models.items():
        write(folder, text, name)
    return write(folder, f'models = ["*.py"]\ntargets = ["ethos-u55-32"]\n{limits}')


def test_a_cell_that_fails_is_a_row(tmp_path: Path) -> None:
    file = _models(tmp_path, {"good.py": GOOD, "killer.py": KILLER, "wrong.py": WRONG})
    done = sweep(file, tmp_path / "out", *ALONE)
    assert done.code == 7, done.err
    found = {row["model"]: row for row in rows(tmp_path / "out")}
    assert {name: row["status"] for name, row in found.items()} == {
        "good.py": "pass",
        "killer.py": "killed",
        "wrong.py": "refused",
    }
    assert (tmp_path / "attempts").read_text(encoding="ascii") == "xxx"
    assert (found["wrong.py"]["error"], found["wrong.py"]["exit_code"]) == ("InputError", 3)
    assert "forward failed" in found["wrong.py"]["message"]
    assert found["good.py"]["npu_cycles_source"] == "estimated"
    assert record(tmp_path / "out")["status"] == "fail"
    assert sdk("validate", tmp_path / "out", cwd=tmp_path).code == 0
    # What was killed is done again when that is asked for, and then alone.
    again = sdk("sweep", file, "--retry", "--dry-run", "--json", "-o", tmp_path / "out", cwd=tmp_path)
    assert json.loads(again.out)["left"]["cells"] == 1


@pytest.mark.thorough
def test_limits_of_a_task_are_rows(tmp_path: Path) -> None:
    limits = '[limits]\ntime = 12\nmemory = "512 MiB"\n'
    file = _models(tmp_path, {"hungry.py": HUNGRY, "slow.py": SLOW}, limits)
    done = sweep(file, tmp_path / "out")
    assert done.code == 7, done.err
    found = {row["model"]: (row["status"], row["error"]) for row in rows(tmp_path / "out")}
    assert found == {"hungry.py": ("out of memory", "OutOfMemory"), "slow.py": ("timeout", "Timeout")}
    # What the model started is gone too, although it has a session of its own.
    ran = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _words(path) == b"sleep\x00612\x00"]
    assert ran == []
    # With more time, there is something to do again.
    write(tmp_path, file.read_text(encoding="utf-8").replace("= 12", "= 13"))
    again = sdk("sweep", file, "--dry-run", "--json", "-o", tmp_path / "out", cwd=tmp_path)
    assert json.loads(again.out)["left"]["cells"] == 1


def _words(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.thorough
def test_a_worker_that_is_killed_changes_nothing(small: Path, tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    process = start(file, tmp_path / "out", "-j", "2")
    try:
        wait_for(lambda: finished(tmp_path / "out") or process.poll() is not None, "the first cell")
        assert listening([process.pid, *family(process)]) == set()
        os.kill(warm(process)[0], signal.SIGKILL)
        out, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, out
    assert by_cell(tmp_path / "out") == by_cell(small / "out")


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGINT, id="interrupted", marks=pytest.mark.thorough),
    ],
)
def test_a_sweep_that_ends_early_is_gone_on_with(small: Path, tmp_path: Path, number: signal.Signals) -> None:
    file, out = write(tmp_path, SMALL), tmp_path / "out"
    process = start(file, out, "-j", "1")
    try:
        wait_for(lambda: finished(out) or process.poll() is not None, "the first cell")
        children = family(process)
        assert children
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.kill()
        process.wait(timeout=60)
    finally:
        process.kill()
    wait_for(lambda: not alive(children), "the end of all processes", 30)
    said = process.communicate()[0]
    before = len(finished(out))
    if number == signal.SIGINT:
        assert process.returncode == INTERRUPTED, said
        assert "Traceback" not in said
        assert record(out)["status"] == "incomplete"
        assert {row["status"] for row in rows(out)} == {"pass", "not run"}
        assert_clear(sdk("validate", out, cwd=tmp_path), 3, "is incomplete")
    done = sweep(file, out, "-j", "1")
    assert done.code == 0, done.err
    assert record(out)["session"]["cells_before"] == before > 0
    assert record(out)["session"]["lower_steps"] == 0
    assert by_cell(out) == by_cell(small / "out")
    assert sdk("validate", out, cwd=tmp_path).code == 0


NAMED = "import torch\nmodel = torch.nn.Linear(4, {})\nexample_inputs = (torch.ones(1, 4),)\n"
NAMES = ["mobilenet.v2.py", ".hid.py", "a;b.py", "a#b.py", "a%s.py", "a\\n.py", "a:b.py", "a b.py"]


@pytest.mark.thorough
def test_names_with_dots_and_signs_are_names(tmp_path: Path) -> None:
    folder = tmp_path / 'a;b #% \\ : $(x) "'
    for number, name in enumerate(NAMES):
        write(folder, NAMED.format(3 + number), name)
    models = ", ".join(f"'{name}'" for name in NAMES)
    text = f"models = [{models}]\ntargets = 'ethos-u55-32'\nsimulators = 'host'\n"
    file = write(folder, text, "my;sweep #%s\\:.toml")
    env = {"ETHOSU_SDK_CACHE": str(folder / 'ca;che $(y)" (')}
    sdk_ok("sweep", file, "-o", "o;u#t", cwd=folder, env=env, timeout_s=600)
    assert {row["model"]: row["status"] for row in rows(folder / "o;u#t")} == dict.fromkeys(NAMES, "pass")
    assert sdk("validate", "o;u#t", cwd=folder).code == 0


RAISES = """import sys
class Strange(Exception):
    def __str__(self):
        return "s" * 1_000_000
raise {}
"""


def test_what_a_model_raises_is_a_row_with_its_class(tmp_path: Path) -> None:
    raised = {
        "long.py": ('ValueError("v" * 50_000_000)', "ValueError: vvv"),
        "strange.py": ("Strange", "Strange: sss"),
        "left.py": ('SystemExit("not today")', "SystemExit: not today"),
        "interrupted.py": ("KeyboardInterrupt", "KeyboardInterrupt"),
    }
    file = _models(tmp_path, {name: RAISES.format(what) for name, (what, _) in raised.items()})
    assert sweep(file, tmp_path / "out", *ALONE).code == 7
    found = {row["model"]: row for row in rows(tmp_path / "out")}
    assert found.keys() == raised.keys()
    for name, (_, words) in raised.items():
        assert found[name]["status"] in ("refused", "failed"), found[name]
        assert words in found[name]["message"], found[name]
        assert len(found[name]["message"]) < 2000


FULL = """import errno, os
from pathlib import Path
if Path("full").exists():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "weights.tmp")
import torch
model = torch.nn.Linear(4, 3)
example_inputs = (torch.ones(1, 4),)
"""


def test_a_full_disk_is_no_result(tmp_path: Path) -> None:
    file = _models(tmp_path, {"full.py": FULL})
    (tmp_path / "full").touch()
    assert sweep(file, tmp_path / "out", *ALONE).code == 7
    (row,) = rows(tmp_path / "out")
    assert (row["status"], "No space left on device" in row["message"]) == ("failed", True)
    (tmp_path / "full").unlink()
    assert sweep(file, tmp_path / "out", *ALONE).code == 0  # without --retry
    assert [row["status"] for row in rows(tmp_path / "out")] == ["pass"]
