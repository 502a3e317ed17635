"""Files are opened by `base/filesystem.py`, records read by `records/bundle.py`; exceptions are listed."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.sources import PACKAGE, nodes, offenders, python_files

# Who writes past the door, and why that follows no link.
WRITES = {
    "base/filesystem.py": "the door itself; into the new file of write_atomic",
    "base/forks.py": "a pipe",
    "compile/worker.py": "a pipe",
    "base/proc.py": "a pipe",
    "base/plain_text.py": "/dev/null",
    "npu/weight_stream.py": "/dev/null",
    "simulate/qemu/memories.py": "/proc/PID/mem",
    "simulate/fvp_launcher/launcher.py": "the user's own name for UART0's output, as the FVPs take it",
    "simulate/fvp_simulator.py": "images in a new folder",
    "base/npz.py": "into the new file of write_atomic",
    "compile/vela_capture.py": "a new folder",
    "compile/layer_values.py": "a new folder",
    "compile/compile_facts.py": "a new folder",
    "compile/evaluation_outputs.py": "a new folder",
    "compile/check_references.py": "a new folder",
    "compile/program_check.py": "a new folder",
    "compile/tflite/stages.py": "a new folder",
    "compile/tflite/reference.py": "a new folder",
    "reporting/convert/executorch_formats.py": "a new folder",
    "installation/doctor_exercises.py": "a new folder",
    "installation/install_fvp.py": "the new folder of an installation",
}
# Commands that read JSON of their own, which no manifest lists.
READS = {
    "records/bundle.py": "manifests; the door itself",
    "run/uart.py": "sealed lines of the firmware",
    "sweep/worker_tasks.py": "the sweep's token",
    "sweep/sweep_plan.py": "manifests; cells and lists of reads that they say are unchanged",
    "sweep/cell_rows.py": "what the same step has just written",
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
            or (last in _WRITING and not name.startswith("filesystem."))
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
    """base/filesystem.py."""
    found = offenders([path for path in python_files() if name_of(path) not in WRITES], writes)
    assert not found, found


# The rooms that commands are made of.
COMMANDS = ("cli", "run", "analysis", "reporting", "sweep", "installation", "api")


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
        "path.write_text('')\nfilesystem.write_text(path, '')\nnp.save(path, array)\nfiles.read_json(path)\n"
    )
    assert writes(path) == [
        "open at line 3",
        "os.open at line 4",
        "path.write_text at line 5",
        "np.save at line 7",
    ]
    assert reads(path) == ["files.read_json"]
