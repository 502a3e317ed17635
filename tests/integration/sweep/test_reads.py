"""What a model reads is part of it, whatever it does while it reads."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import filesystem
from tests.integration.sweep.sweeps import NET, SCALE, rows, sweep, write
from tests.records import read

READER = """
import json, os, sys
from pathlib import Path
from ethosu_sdk.compile.model_reads import Recorder

reads = Recorder(os.environ)
open("before").read()
os.chdir("inside")
open("relative").read()
Path("made").write_text("by the model itself")
open("made").read()
open("../changed").read()
Path("../changed").write_text("other")
open("later").read()
print(json.dumps(reads.digests(Path(sys.argv[1]))))
"""


def test_files_are_found_where_they_were_read(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    for name in ("before", "changed", "inside/relative", "inside/later"):
        (tmp_path / name).write_text(name, encoding="utf-8")
        os.utime(tmp_path / name, (1, 1))
    later = 4_000_000_000  # a clock that is ahead is no change
    os.utime(tmp_path / "inside" / "later", (later, later))
    argv = [sys.executable, "-c", READER, str(tmp_path)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    known = {
        name: filesystem.sha256_file(tmp_path / name)
        for name in ("before", "inside/relative", "inside/later")
    }
    assert found == {**known, "changed": "0" * 64}


@pytest.mark.thorough
def test_no_compilation_outlives_what_its_model_read(tmp_path: Path) -> None:
    """One target alone is swept after a change: what the other has from before is of the old model."""
    both = 'models = ["net.py"]\ntargets = ["ethos-u55-32", "ethos-u55-64"]\n'
    file = write(tmp_path, both)
    write(tmp_path, NET, "net.py")
    write(tmp_path, SCALE, "scale.py")
    assert sweep(file, tmp_path / "out").code == 0
    write(tmp_path, SCALE.replace("0.5", "0.75"), "scale.py")
    write(tmp_path, both.replace(', "ethos-u55-64"', ""))
    assert sweep(file, tmp_path / "out").code == 0
    write(tmp_path, both)
    damaged = next(
        path
        for path in (tmp_path / "out" / "compiled").glob("*/net.compile.json")
        if read(path)["target"]["macs"] == 32
    )
    damaged.write_text("{}", encoding="utf-8")  # a record that nobody can use is made anew too
    shutil.rmtree(tmp_path / "out" / "cells")
    assert sweep(file, tmp_path / "out").code == 0
    assert sweep(file, tmp_path / "fresh").code == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "fresh")
