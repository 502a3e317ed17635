"""Imports that import-linter's contracts (pyproject.toml) do not see, and who includes whom in the firmware."""

import ast
import re
import sys
from pathlib import Path

from tests.contract.sources import PACKAGE, nodes, offenders, python_files, text
from tests.places import ROOT

FIRMWARE = ROOT / "firmware"
# What the NPU model may import beside itself: NumPy, Vela's weight decoder, how errors and targets are called.
NPU_IMPORTS = ("ethosu_sdk.npu", "ethosu_sdk.base.errors", "ethosu_sdk.base.targets", "numpy", "ethosu")
SLOW = {"torch", "executorch", "sklearn", "matplotlib", "torchao", "tosa_reference_model"}


def imports(path: Path, *, top_only: bool = False) -> set[str]:
    """The modules that a file imports, or what it takes from one; with `top_only` those at module level."""
    found = set()
    for node in nodes(path)[0].body if top_only else nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def not_for_the_npu(path: Path) -> set[str]:
    return {
        name
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not any(f"{name}.".startswith(f"{allowed}.") for allowed in NPU_IMPORTS)
    }


def test_the_npu_model_stands_alone() -> None:
    found = offenders(sorted((PACKAGE / "npu").rglob("*.py")), not_for_the_npu)
    assert not found, found


def slow_at_start(path: Path) -> set[str]:
    return {module.split(".")[0] for module in imports(path, top_only=True)} & SLOW


def test_slow_modules_are_imported_where_they_are_used() -> None:
    found = offenders(python_files(), slow_at_start)
    assert not found, found


def test_planted_imports_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "import torch.nn\nfrom ethosu_sdk.npu import ops\nfrom ethosu_sdk.base.errors import InputError\n"
        "def f():\n    import ethosu_sdk.run, ethosu_sdk.base.proc, rich.text, numpy, sys\n",
        encoding="utf-8",
    )
    assert not_for_the_npu(path) == {"torch.nn", "ethosu_sdk.run", "ethosu_sdk.base.proc", "rich.text"}
    assert slow_at_start(path) == {"torch"}
    assert offenders([path], slow_at_start) == f"{path}: {{'torch'}}"


def rich_by_hand(path: Path) -> set[str]:
    """Rich's own console and escape let the codes through that base/terminal.py stops."""
    found = {
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich")
        for alias in node.names
    }
    used_as_type = path == PACKAGE / "analysis" / "inspect_command.py"  # below TYPE_CHECKING
    return found & ({"escape", "Text"} | (set() if used_as_type else {"Console"}))


def test_one_door_to_the_terminal() -> None:
    door = PACKAGE / "base" / "terminal.py"
    assert rich_by_hand(door)
    found = offenders([path for path in python_files() if path != door], rich_by_hand)
    assert not found, found


# Folder of the firmware → the folders whose headers it may include.
FIRMWARE_ALLOWED = {
    "app": {"app", "base", "runtime", "npu", "kernels", "hal"},
    "runtime": {"runtime", "npu", "kernels", "hal", "base"},
    "kernels": {"kernels", "hal", "base"},
    "npu": {"npu", "hal"},
    "board": {"board", "hal"},
    "hal": {"hal"},
    "base": {"base"},
}
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def firmware_files() -> list[Path]:
    return sorted(
        path
        for folder in FIRMWARE_ALLOWED
        for path in (FIRMWARE / folder).rglob("*")
        if path.suffix in (".cpp", ".hpp", ".h", ".c")
    )


def foreign_headers(path: Path, folder: str) -> list[str]:
    return [
        name
        for name in _INCLUDE.findall(text(path))
        if (first := name.split("/")[0]) in FIRMWARE_ALLOWED and first not in FIRMWARE_ALLOWED[folder]
    ]


def test_firmware_includes_follow_the_layers() -> None:
    found = offenders(
        firmware_files(), lambda path: foreign_headers(path, path.relative_to(FIRMWARE).parts[0])
    )
    assert not found, found


def board_by_preprocessor(path: Path) -> list[str]:
    return [line for line in text(path).splitlines() if line.startswith("#if") and "CORSTONE" in line]


def test_boards_differ_by_file_and_not_by_preprocessor() -> None:
    found = offenders(firmware_files(), board_by_preprocessor)
    assert not found, found


def test_planted_lines_of_the_firmware_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "planted.cpp"
    path.write_text('#include "app/main.hpp"\n#include "hal/hal.hpp"\n#if CORSTONE_300\n#endif\n')
    assert foreign_headers(path, "runtime") == ["app/main.hpp"]
    assert board_by_preprocessor(path) == ["#if CORSTONE_300"]
