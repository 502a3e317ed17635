"""Vela itself on one TOSA graph, many times in a process: ``python vela_runs.py GRAPH FOLDER < RUNS``.

RUNS is a JSON list of Vela's flags for each run. The answer, on the last line, has for each run the digest of what
Vela wrote for the NPU and the row of its summary; or what it said when it refused.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import shutil
import sys
from pathlib import Path

from ethosu.vela import vela


def main() -> None:
    graph, folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps([run(graph, folder / "out", flags) for flags in json.load(sys.stdin)]))


def run(graph: str, folder: Path, flags: list[str]) -> dict[str, object]:
    shutil.rmtree(folder, ignore_errors=True)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            vela.main([graph, *flags, f"--output-dir={folder}", "--output-format=raw"])
    except BaseException as error:  # it refuses by ending the process
        return {"refused": f"{error!r} {said.getvalue()}"}
    (summary,) = folder.glob("*_summary_*.csv")
    (made,) = folder.glob("*.npz")
    with summary.open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    return {"sha256": hashlib.sha256(made.read_bytes()).hexdigest(), "summary": row}


if __name__ == "__main__":
    main()
