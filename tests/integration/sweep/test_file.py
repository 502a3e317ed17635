"""SWEEP.toml: what it may say, what is said of mistakes in it, and the plan that is made of it."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import COMMAND, assert_clear, sdk
from tests.integration.sweep.sweeps import write
from tests.records import printed

BASE = 'models = ["zoo:add"]\ntargets = ["ethos-u55-128"]\n'


def planned(folder: Path, text: str) -> dict[str, Any]:
    value = printed(sdk("sweep", write(folder, text), "--dry-run", "--json", cwd=folder))
    assert isinstance(value, dict)
    return value


MISTAKES = [
    ('models = ["zoo:add"\ntargets = 1\n', "sweep.toml:2: this is not TOML"),
    (BASE + 'memory_mode = ["Sram_Only"]\n', "sweep.toml:3: a sweep has no 'memory_mode'"),
    ('models = ["zoo:ad"]\ntargets = ["ethos-u55-128"]\n', "sweep.toml:1: the zoo has no model 'ad'"),
    ('models = ["nets/*.py"]\ntargets = ["ethos-u55-128"]\n', "sweep.toml:1: no model is called 'nets/*.py'"),
    (
        'models = ["zoo:add"]\n\ntargets = ["ethos-u55-127"]\n',
        "sweep.toml:3: there is no target 'ethos-u55-127'",
    ),
    ('models = ["zoo:add"]\n', "sweep.toml has no 'targets'"),
    (BASE + "quantize = []\n", "sweep.toml:3: quantize must be a text or a list of 1 to 1,000 texts"),
    (BASE + "quantize = [8]\n", "sweep.toml:3: quantize must be a text or a list of 1 to 1,000 texts"),
    (BASE + 'simulators = ["fvp"]\n', "sweep.toml:3: there is no simulator for sweeps 'fvp'"),
    (BASE + 'vela = ["../x"]\n', "sweep.toml:3: '../x' is not a version of Vela"),
    (BASE + 'inputs = ["no.npz"]\n', "sweep.toml:3: there is no file no.npz"),
    (BASE + "[limits]\ntime = 0\n", "sweep.toml:4: time must be a number of seconds"),
    (BASE + "[limits]\ntime = inf\n", "sweep.toml:4: time must be a number of seconds"),
    (BASE + '[limits]\nmemory = "1 KiB"\n', "sweep.toml:4: memory must be a size of at least 64 MiB"),
    (BASE + "[limits]\nmemry = 1\n", "sweep.toml:4: limits has no 'memry'"),
    (BASE + 'evaluate = "x.npz"\n', "sweep.toml:3: evaluate must be a table"),
    (BASE + '[evaluate]\n"zoo:ad" = "x.npz"\n', "sweep.toml:4: the sweep has no model 'zoo:ad'"),
    (BASE + '[evaluate]\n"zoo:*" = "x.npz"\n', "sweep.toml:4: there is no file x.npz"),
    (BASE + '[evaluate]\n"zoo:*" = "sweep.toml"\n', "sweep.toml is not a valid .npz file"),
    (
        BASE + '[[exclude]]\nmodel = "zoo:add"\n[[exclude]]\nmacs = 1\n',
        "sweep.toml:6: [[exclude]] has no 'macs'",
    ),
    (BASE + '[[exclude]]\nmodel = "zoo:*"\n', "sweep.toml: no cells are left to do"),
    (
        BASE + 'memory_modes = ["Dedicated_Sram"]\n',
        "1 dropped: memory mode 'Dedicated_Sram' cannot be used with",
    ),
    (
        'models = ["nets/**.py"]\ntargets = ["ethos-u55-128"]\n',
        "sweep.toml:1: 'nets/**.py' is not a valid pattern",
    ),
    (BASE + "[limits]\ntime = 1" + "0" * 400 + "\n", "sweep.toml:4: time must be a number of seconds"),
    (BASE + 'name = "../up"\n', "sweep.toml:3: name must be up to 64 letters"),
    (BASE + "x = " + "[" * 3000 + "\n", "not TOML"),
    (BASE + "name = 1" + "0" * 5000 + "\n", "not TOML"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert_clear(sdk("sweep", write(tmp_path, text), "--dry-run", cwd=tmp_path), 3, said)
    assert not (tmp_path / "build").exists()


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    done = sdk("sweep", write(tmp_path, BASE + "target = 1\n"), "--dry-run", cwd=tmp_path)
    assert "did you mean 'targets'?" in done.err


def test_what_cannot_be_is_counted_with_its_reason(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        """
models = ["zoo:add", "zoo:softmax"]
targets = ["ethos-u55-64", "ethos-u55-128", "ethos-u85-256"]
memory_modes = ["Sram_Only", "Dedicated_Sram"]
simulators = ["none", "qemu"]
boards = ["corstone-300", "corstone-320"]
""",
    )
    dropped = {row["reason"]: row["count"] for row in plan["dropped"]}
    assert dropped == {
        # 2 models by 2 targets by (none, and qemu on two boards)
        "memory mode 'Dedicated_Sram' cannot be used with Ethos_U55_High_End_Embedded": 12,
        # 2 models by 2 targets by Sram_Only
        "corstone-320 has no ethos-u55, which the program is compiled for": 4,
    }
    # U55: 2 targets by 1 mode by 2 ways; U85: 2 modes by 3 ways; for each model.
    assert plan["cells"] == 2 * (4 + 6)
    # U55-64 is lowered by itself: its look-up tables need care.
    assert (plan["lowerings"], plan["vela_runs"], plan["simulations"]) == (6, 8, 2 * (2 + 4))


def test_patterns_take_what_goes_with_a_target(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'models = "zoo:add"\ntargets = "*"\nmemory_modes = "*"\n')
    assert (plan["cells"], plan["dropped"]) == (4 * 2 + 2 * 6 + 5 * 6, [])


def test_cells_are_left_out_and_added(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        BASE
        + """
memory_modes = ["*"]
[[exclude]]
memory_mode = "Shared_*"
[[include]]
target = "ethos-u85-*"
memory_mode = "default"
quantize = "int16"
[[include]]
model = "zoo:softmax"
memory_mode = "Sram_Only"
[[constraints]]
figure = "sram_bytes"
max = "2 MB"
""",
    )
    assert (plan["cells"], plan["excluded"]) == (1 + 5 + 1, 1)
    assert plan["lowerings"] == 3


def test_models_are_named_from_the_folder_of_the_file(tmp_path: Path) -> None:
    for name in ("b.py", "a.py"):
        write(tmp_path / "nets", "x = 1\n", name)
    file = write(tmp_path, 'models = ["nets/*.py"]\ntargets = ["ethos-u55-128"]\n')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = sdk("sweep", file, "--dry-run", "--json", cwd=elsewhere)
    assert json.loads(done.out)["cells"] == 2


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it", encoding="utf-8")
    done = sdk("sweep", write(tmp_path, BASE), "-o", "mine", cwd=tmp_path)
    assert (done.code, "holds something other than a sweep" in done.err) == (3, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(("word", "near"), [("page", ""), ("quary", "query"), ("compar", "compare")])
def test_a_word_that_is_no_command_is_told(tmp_path: Path, word: str, near: str) -> None:
    done = sdk("sweep", word, cwd=tmp_path)
    assert (done.code, f"neither a file nor a command of `sweep` called '{word}'" in done.err) == (2, True)
    assert f"did you mean '{near}" in done.err


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "socket"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sweep.toml"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "device":
            path = Path("/dev/zero")
        else:
            listener.bind(str(path))
        done = sdk("sweep", path, cwd=tmp_path, timeout_s=60)
    assert (done.code, "not a file" in done.err) == (3, True), done.err


def test_a_working_folder_that_was_deleted(tmp_path: Path) -> None:
    file = write(tmp_path, BASE)
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$0" "$@"'
    asked = {("sweep", file): 5, ("sweep", file, "--dry-run"): 0, ("sweep", "query", "SELECT 1"): 2}
    for words, code in asked.items():
        gone.mkdir(exist_ok=True)
        argv = ["bash", "-c", script, str(COMMAND), *map(str, words)]
        done = subprocess.run(argv, cwd=gone, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr


def test_a_processor_has_one_row_whatever_the_version_of_vela(tmp_path: Path) -> None:
    """Vela does not see its programs."""
    versions = 'vela = ["5.0.0", "5.1.0"]\n'
    alone = planned(tmp_path, BASE + versions)
    both = planned(tmp_path, BASE.replace('128"]', '128", "cortex-m55"]') + versions)
    assert (alone["cells"], alone["vela_runs"]) == (2, 2)
    assert (both["cells"], both["vela_runs"]) == (3, 2)
