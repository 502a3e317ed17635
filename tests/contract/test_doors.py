"""Files are opened by `files/opening.py`, records read by `results/reading.py`; exceptions are listed."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.sources import PACKAGE, nodes, offenders, python_files

# Who writes past the door, and why that follows no link.
WRITES = {
    "files/opening.py": "the door itself",
    "files/writing.py": "into the new file of write_atomic",
    "proc/forks.py": "a pipe",
    "aot/pipeline/worker.py": "a pipe",
    "proc/__init__.py": "a pipe",
    "streams.py": "/dev/null",
    "npu/weights/weight_stream.py": "/dev/null",
    "simulators/qemu/bank_access.py": "/proc/PID/mem",
    "fvp_launcher/launcher.py": "the user's own name for UART0's output, as the FVPs take it; standard output",
    "simulators/fvp/simulator.py": "images in a new folder",
    "npz/writing.py": "into the new file of write_atomic",
    "aot/vela/capture.py": "a new folder",
    "aot/comparison/evaluation/layers.py": "a new folder",
    "aot/facts/layers.py": "a new folder",
    "aot/comparison/evaluation/eager_outputs.py": "a new folder",
    "aot/comparison/check/rounding.py": "a new folder",
    "steps/compile/check.py": "a new folder",
    "readers/convert/flatbuffer.py": "a new folder",
    "installation/doctor/exercises.py": "a new folder",
    "installation/fvp/install.py": "the new folder of an installation",
}
# Commands that read JSON of their own, which no manifest lists.
READS = {
    "results/bundle.py": "manifests",
    "results/reading.py": "the door itself",
    "sweep/evidence.py": "manifests",
    "sweep/work.py": "the sweep's token",
    "sweep/plan.py": "cells and lists of reads that evidence.py has found unchanged",
    "sweep/rows.py": "what the same step has just written",
}
_WRITING = ("write_text", "write_bytes", "touch")


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def writes(path: Path) -> list[str]:
    """Calls that open a file of the caller's choice for writing."""
    found = []
    for name, call in calls(path):
        last = name.rpartition(".")[2]
        texts = [
            row.value
            for row in ast.walk(call)
            if isinstance(row, ast.Constant) and isinstance(row.value, str)
        ]
        modes = [
            text
            for text in texts
            if set(text) <= set("wax+bt") and set(text) & set("wax+") and len(text) <= 3
        ]
        flags = ast.unparse(call)
        if (
            (last in ("open", "fdopen", "ZipFile") and (modes or "O_WRONLY" in flags or "O_RDWR" in flags))
            or (last in _WRITING and not name.startswith("writing."))
            or name in ("np.save", "np.savez", "shutil.copyfile", "shutil.copy", "shutil.copy2")
        ):
            found.append(f"{name} at line {call.lineno}")
    return found


def reads(path: Path) -> list[str]:
    """Calls that read a record."""
    return [call for call, _ in calls(path) if call.endswith(("read_json", "parse_record"))]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def test_what_is_written_goes_through_the_door() -> None:
    """files/opening.py or files/writing.py."""
    found = offenders([path for path in python_files() if name_of(path) not in WRITES], writes)
    assert not found, found


# The rooms that commands are made of.
COMMANDS = (
    "cli",
    "steps",
    "readers",
    "sweep",
    "installation",
    "results",
    "tables",
    "page",
    "console",
    "api.py",
)


def test_commands_read_records_through_one_door() -> None:
    """results.read, which holds a record against its manifest."""
    assert {room_of(path) for path in python_files()} >= {*COMMANDS}
    commands = [path for path in python_files() if room_of(path) in COMMANDS and name_of(path) not in READS]
    found = offenders(commands, reads)
    assert not found, found


def test_the_tables_have_no_stale_row() -> None:
    assert [name for name in WRITES if not writes(PACKAGE / name)] == []
    assert [name for name in READS if not reads(PACKAGE / name)] == []


def test_planted_calls_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "open(name)\nopen(name, 'rb')\nopen(name, 'wb')\nos.open(name, os.O_WRONLY)\n"
        "path.write_text('')\nwriting.write_text(path, '')\nnp.save(path, array)\nfiles.read_json(path)\n"
    )
    assert writes(path) == [
        "open at line 3",
        "os.open at line 4",
        "path.write_text at line 5",
        "np.save at line 7",
    ]
    assert reads(path) == ["files.read_json"]
