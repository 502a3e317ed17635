"""Who may import whom. The tables are the design; the code is checked against them.

A *room* is a module or package directly below ethosu_sdk. The modules and sub-packages of a package are its *units*:
no two of them import each other, directly or through others.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Mapping
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
    *("proc", "provenance", "schema", "extras", "error_catalogue", "program_options", "boards", "protocol"),
    *("targets", "tools", "toolchain_lock", "pte", "vela_blocks", "npz", "feeds"),
}
SHOWN = {"console", "results"}  # how commands speak, and folders of results
WORKERS = {"aot", "firmware_build", "simulators", "evidence", "runtimes", "npu", "cpu_cycles"}

# Room → the rooms it may import, beside FACTS and BASE where NARROW does not say otherwise. Those on top come first.
ALLOWED: dict[str, set[str]] = {
    "cli": {"steps", "readers", "sweep", "installation", *SHOWN},
    "api": {"steps", "readers", *SHOWN},  # commands as functions
    "fvp_launcher": {"simulators", "evidence"},  # the other front door, for scripts that call Arm's FVPs
    "sweep": {"steps", "readers", "page", "aot", "firmware_build", "simulators", "npu", *SHOWN},
    "installation": {"firmware_build", "simulators", "evidence", "runtimes", "npu", *SHOWN},
    "steps": {*WORKERS, "tables", *SHOWN},  # they make records
    "readers": {"evidence", "page", "tables", *SHOWN},  # they take records and facts alone
    "tables": {*SHOWN},
    "results": {"console"},
    "page": set(),
    "console": set(),
    # Workers import none of each other, but for what Vela, a simulator and a log have in common with the firmware.
    "aot": {"npu"},  # reads Vela's streams with it
    "simulators": {"npu", "evidence", "cpu_cycles"},  # drive the model; part an FVP's output; count blocks
    "firmware_build": set(),
    "evidence": set(),
    "runtimes": set(),
    "cpu_cycles": set(),
}
# Room → all that it may import.
NARROW: dict[str, set[str]] = {
    "__main__": {"cli", "interrupts"},
    "npu": {"errors", "targets", "vela_blocks"},
    "tools": {"proc", "provenance", *BASE},
    "provenance": {"proc", *BASE},
    "npz": {"pte", *BASE},
    "feeds": {"protocol", *BASE},
    "pte": {"vela_blocks", "targets", *BASE},
    "boards": {"targets", *BASE},
    **dict.fromkeys(FACTS - {"tools", "provenance", "npz", "pte", "boards", "proc", "feeds"}, BASE),
    "proc": {"errors", "files", "plain_text", "redaction"},
    **{room: {"errors", "files", "redaction", "records"} for room in ("records", "resources", "cache")},
    "plain_text": {"redaction"},
    "files": {"errors", "redaction"},
    **{room: set() for room in ("interrupts", "streams", "redaction", "errors")},
}
# What the NPU model may import beside the package: NumPy and Vela's weight decoder.
NPU_THIRD_PARTY = {"numpy", "ethosu"}
SLOW = {"torch", "executorch", "sklearn", "matplotlib", "torchao", "tosa_reference_model"}


def rights(room: str) -> set[str]:
    """The rooms that `room` may import."""
    return NARROW[room] if room in NARROW else {*ALLOWED[room], *FACTS, *BASE}


def units(package: Path) -> set[str]:
    """The modules and sub-packages of a package by name, without what is no Python."""
    return {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """(module or what is taken from one, whether at module level) for every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who depends on whom"
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return tuple(found)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports; `from ethosu_sdk import __version__` is none."""
    rooms = {module.split(".")[1] for module, _ in imports(path) if module.startswith("ethosu_sdk.")}
    return rooms - {"__version__"}


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_layers(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert imported_rooms(path) - {room} - rights(room) == set(), f"{room} may not import these"
    if room == "npu":
        third = {module.split(".")[0] for module, _ in imports(path)} & {
            *SLOW,
            "rich",
            "typer",
            "ethosu",
            "numpy",
        }
        assert third <= NPU_THIRD_PARTY


def test_every_room_has_a_layer() -> None:
    assert units(PACKAGE) - {"__init__"} == {*ALLOWED, *NARROW}


def test_readers_take_records_alone() -> None:
    """Of what makes records, a reader has the evidence of logs: `parse-log` reads those."""
    assert rights("readers") & {"steps", "sweep", "installation", *WORKERS} == {"evidence"}
    assert not rights("steps") & {"readers", "sweep", "installation", "page"}


def test_no_right_is_unused() -> None:
    used: defaultdict[str, set[str]] = defaultdict(set)
    for path in python_files():
        used[room_of(path)] |= imported_rooms(path)
    assert {room: spare for room, names in ALLOWED.items() if (spare := names - used[room])} == {}


def unit_imports(package: Path, name: str) -> dict[str, set[str]]:
    """Unit → the other units of `package` that it imports. `name` is the package's dotted one."""
    present, found = units(package), defaultdict(set)
    for path in package.rglob("*.py"):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        for module, _ in imports(path):
            if (module + ".").startswith(name + "."):
                other = module[len(name) + 1 :].split(".")[0]
                found[own].add(other if other in present else "__init__")
    return {unit: others - {unit} for unit, others in found.items()}


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """All that can be reached from `start`, which is in it when it lies in a circle."""
    found: set[str] = set()
    todo = [*graph.get(start, ())]
    while todo:
        unit = todo.pop()
        if unit not in found:
            found.add(unit)
            todo += graph.get(unit, ())
    return found


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one unit: in each, everyone imports everyone in the end."""
    found: list[set[str]] = []
    for unit in sorted(graph):
        if not any(unit in circle for circle in found):
            circle = {other for other in reached(graph, unit) if unit in reached(graph, other)}
            found += [circle] if circle else []
    return found


def packages() -> list[Path]:
    """Every package, the whole one included."""
    return [path.parent for path in python_files() if path.name == "__init__.py"]


@pytest.mark.parametrize("package", packages(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_units_of_a_package_have_no_circle(package: Path) -> None:
    name = ".".join(("ethosu_sdk", *package.relative_to(PACKAGE).parts))
    graph = unit_imports(package, name)
    if (
        package == PACKAGE
    ):  # every module may know the version; the functions of `api` are loaded when they are used
        graph = {room: others - {"__init__"} for room, others in graph.items()}
    assert circles(graph) == []


def test_planted_circles_are_found(tmp_path: Path) -> None:
    """Through a sub-package, inside of functions, and through what a package's __init__ takes from its modules."""
    files = {
        "__init__.py": "",
        "low/__init__.py": "",
        "low/leaf.py": "",
        "low/upwards.py": "def f():\n    from planted import high\n",
        "high.py": "from planted.middle import f\n",
        "middle.py": "import planted.low.leaf\n",
        "whole/__init__.py": "from planted.whole.part import f\n",
        "whole/part.py": "from planted.whole import g\n",
        "fine.py": "from planted import low, whole\nfrom planted.low import leaf\n",
    }
    for name, text in files.items():
        path = tmp_path / "planted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert circles(unit_imports(tmp_path / "planted", "planted")) == [{"high", "middle", "low"}]
    assert circles(unit_imports(tmp_path / "planted" / "whole", "planted.whole")) == [{"__init__", "part"}]
    assert circles(unit_imports(tmp_path / "planted" / "low", "planted.low")) == []


def test_planted_imports_of_a_reader_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "from ethosu_sdk import __version__, npu\ndef f():\n    import ethosu_sdk.steps.run\n",
        encoding="utf-8",
    )
    assert imported_rooms(path) - rights("readers") == {"npu", "steps"}


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
    door = PACKAGE / "console" / "terminal.py"
    for path in set(python_files()) - {door}:
        found = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich")
            for alias in node.names
        }
        used_as_type = path == PACKAGE / "steps" / "inspect" / "inspect_command.py"  # below TYPE_CHECKING
        assert not found & ({"escape", "Text"} | (set() if used_as_type else {"Console"})), path


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
