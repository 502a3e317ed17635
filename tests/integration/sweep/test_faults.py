"""What goes wrong in a sweep: models that fail in every way, workers and commands that are killed, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.cli import sdk
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
    workers,
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
LOOPBACK = {"0100007F"}
INTERRUPTED = 130


def _models(folder: Path, models: dict[str, str], limits: str = "") -> Path:
    for name, text in models.items():
        write(folder, text, name)
    return write(folder, f'models = ["*.py"]\ntargets = ["ethos-u55-32"]\n{limits}')


def test_a_cell_that_fails_is_a_row(tmp_path: Path) -> None:
    file = _models(tmp_path, {"good.py": GOOD, "killer.py": KILLER, "wrong.py": WRONG})
    done = sweep(file, tmp_path / "out")
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


def test_a_worker_that_is_killed_changes_nothing(small: Path, tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    process = start(file, tmp_path / "out", "-j", "2")
    try:
        wait_for(lambda: finished(tmp_path / "out") or process.poll() is not None, "the first cell")
        assert listening([process.pid, *family(process)]) == LOOPBACK
        os.kill(workers(process)[0], signal.SIGKILL)
        out, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, out
    assert by_cell(tmp_path / "out") == by_cell(small / "out")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
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
    done = sweep(file, out, "-j", "1")
    assert done.code == 0, done.err
    assert record(out)["session"]["cells_before"] == before > 0
    assert record(out)["session"]["lower_steps"] == 0
    assert by_cell(out) == by_cell(small / "out")
    assert sdk("validate", out, cwd=tmp_path).code == 0


def test_a_scheduler_and_workers_of_their_own(small: Path, tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    told = tmp_path / "scheduler.json"
    scheduler = _dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told))
    processes = [scheduler]
    try:
        wait_for(told.is_file, "the scheduler", 120)
        time.sleep(0.2)
        address = json.loads(told.read_text(encoding="utf-8"))["address"]
        options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-nanny")
        processes += [_dask("worker", address, *options) for _ in range(3)]
        done = sweep(file, tmp_path / "out", "--scheduler", address)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert done.code == 0, done.err
    assert by_cell(tmp_path / "out") == by_cell(small / "out")


def _dask(kind: str, *words: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, stdout=quiet, stderr=quiet, start_new_session=True)


def test_a_scheduler_that_is_not_there(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    done = sweep(file, tmp_path / "out", "--scheduler", "tcp://127.0.0.1:9")
    assert (done.code, "Traceback" in done.err) == (4, False), done.err
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.err
