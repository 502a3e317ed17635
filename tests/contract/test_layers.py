"""Who may import whom. The tables are the design; the code is checked against them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

PACKAGE = ROOT / "sdk" / "ethosu_sdk"
FIRMWARE = ROOT / "firmware"

BASE = {
    *("errors", "interrupts", "streams", "plain_text", "redaction"),
    *("records", "resources", "cache", "files"),
}
FACTS = {
    "proc",
    "provenance",
    "schema",
    "targets",
    "program_options",
    "tools",
    "toolchain_lock",
    "pte",
    "vela_blocks",
    "npz",
    "error_catalogue",
}
WORKERS = {"aot", "firmware_build", "simulators", "report", "runtimes"}

# Unit → the units of the package it may import. A unit is a module or sub-package directly under ethosu_sdk.
ALLOWED: dict[str, set[str]] = {
    "__main__": {"cli", "interrupts"},
    "cli": {"commands", *FACTS, *BASE},
    "api": {"commands", *FACTS, *BASE},  # the commands as functions
    "fvp_launcher": {"simulators", *FACTS, *BASE},  # the other front door, for scripts that call Arm's FVPs
    "commands": {*WORKERS, "npu", *FACTS, *BASE},  # `inspect --commands` disassembles with npu's decoder
    **dict.fromkeys(WORKERS, FACTS | BASE),
    "aot": {"npu", *FACTS, *BASE},  # which reads what Vela made
    "simulators": {"npu", *FACTS, *BASE},
    "npu": {"errors", "vela_blocks"},
    "proc": {"errors", "files", "plain_text", "redaction"},
    "interrupts": set(),
    "streams": set(),
    "plain_text": {"redaction"},
    "redaction": set(),
    "provenance": {"proc", *BASE},
    "tools": {"proc", "provenance", *BASE},
    "npz": {"pte", *BASE},
    "pte": {"vela_blocks", "targets", *BASE},
    "files": {"errors"},
    **dict.fromkeys(
        (
            "schema",
            "targets",
            "program_options",
            "error_catalogue",
            "toolchain_lock",
            "vela_blocks",
            "records",
            "resources",
            "cache",
        ),
        BASE,
    ),
    "errors": set(),
}
# What the NPU model may import beside the package: NumPy and Vela's weight decoder.
NPU_THIRD_PARTY = {"numpy", "ethosu"}
SLOW = {"torch", "executorch", "sklearn", "matplotlib", "torchao", "tosa_reference_model"}


def units() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()} - {
        "__init__",
        "__pycache__",
        "_data",
    }


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, whether at module level) for every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who depends on whom"
            module = node.module or ""
            if module == "ethosu_sdk":
                for alias in node.names:
                    yield f"ethosu_sdk.{alias.name}", id(node) in top
            else:
                yield module, id(node) in top


def unit_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_layers(path: Path) -> None:
    unit = unit_of(path)
    if unit == "__init__":
        return
    allowed = {*ALLOWED.get(unit, BASE), unit, "__version__"}
    for module, _ in imports(path):
        parts = module.split(".")
        if parts[0] == "ethosu_sdk" and len(parts) > 1:
            assert parts[1] in allowed, f"{unit} may not import {module}"
        elif unit == "npu" and parts[0] in NPU_THIRD_PARTY | SLOW | {"rich", "typer"}:
            assert parts[0] in NPU_THIRD_PARTY, f"npu may not import {module}"


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_slow_modules_are_imported_where_they_are_used(path: Path) -> None:
    at_start = {module.split(".")[0] for module, top in imports(path) if top}
    assert not at_start & SLOW


# What computes outputs knows nothing of cycles, traffic or hazards.
OUTPUTS = (
    "execute",
    "memory",
    "ops",
    "output",
    "dma",
    "weights",
    "stream",
    "program",
    "operation",
    "geometry",
)


def test_what_the_npu_computes_does_not_depend_on_what_it_costs() -> None:
    npu = PACKAGE / "npu"
    found = {
        f"{path.relative_to(npu)}: {module}"
        for path in npu.rglob("*.py")
        if path.relative_to(npu).parts[0].removesuffix(".py") in OUTPUTS
        for module, _ in imports(path)
        if module.startswith(("ethosu_sdk.npu.timing", "ethosu_sdk.npu.hazards"))
    }
    assert found == set()
    assert all((npu / name).is_dir() or (npu / f"{name}.py").is_file() for name in OUTPUTS)


def test_one_door_to_the_terminal() -> None:
    """Rich's own console and escape let the codes through that console/terminal.py stops."""
    door = PACKAGE / "commands" / "shared" / "terminal.py"
    for path in set(python_files()) - {door}:
        found = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich")
            for alias in node.names
        }
        used_as_type = path == PACKAGE / "commands" / "inspect" / "command.py"  # below TYPE_CHECKING
        assert not found & ({"escape", "Text"} | (set() if used_as_type else {"Console"})), path


def test_every_unit_has_a_layer() -> None:
    assert units() - ALLOWED.keys() == set()


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


@pytest.mark.parametrize("path", firmware_files(), ids=lambda path: str(path.relative_to(FIRMWARE)))
def test_firmware_includes_follow_the_layers(path: Path) -> None:
    folder = path.relative_to(FIRMWARE).parts[0]
    for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        first = name.split("/")[0]
        if first in FIRMWARE_ALLOWED:
            assert first in FIRMWARE_ALLOWED[folder], f"{folder} may not include {name}"


def test_boards_differ_by_file_and_not_by_preprocessor() -> None:
    for path in firmware_files():
        assert "CORSTONE" not in " ".join(
            line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#if")
        ), path
