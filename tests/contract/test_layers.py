"""Who may import whom. The tables are the design; the code is checked against them.

A *room* is a module or package directly below ethosu_sdk. The modules and sub-packages of a package are its *units*:
no two of them import each other, directly or through others.
"""

import ast
import functools
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.contract.sources import PACKAGE, nodes, offenders, python_files, text
from tests.places import ROOT

FIRMWARE = ROOT / "firmware"

BASE = {
    *("errors", "interrupts", "streams", "plain_text"),
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
    "installation": {"firmware_build", "simulators", "evidence", "runtimes", "npu", "cpu_cycles", *SHOWN},
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
    "proc": {"errors", "files", "plain_text"},
    **{room: {"errors", "files", "records"} for room in ("records", "resources", "cache")},
    "files": {"errors", "targets"},
    **{room: set() for room in ("interrupts", "streams", "plain_text", "errors")},
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


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """(module or what is taken from one, whether at module level) for every import in a file."""
    top = {id(node) for node in nodes(path)[0].body}
    found = []
    for node in nodes(path):
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


def forbidden(path: Path, room: str) -> set[str]:
    """What a file of `room` imports and may not."""
    found = imported_rooms(path) - {room} - rights(room)
    if room == "npu":
        packages = {module.split(".")[0] for module, _ in imports(path)}
        found |= packages - sys.stdlib_module_names - {"ethosu_sdk"} - NPU_THIRD_PARTY
    return found


def test_imports_follow_the_layers() -> None:
    files = [path for path in python_files() if room_of(path) != "__init__"]
    found = offenders(files, lambda path: forbidden(path, room_of(path)))
    assert not found, found


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


def circles_below(package: Path) -> list[set[str]]:
    name = ".".join(("ethosu_sdk", *package.relative_to(PACKAGE).parts))
    graph = unit_imports(package, name)
    if package == PACKAGE:
        # every module may know the version; the functions of `api` are loaded when they are used
        graph = {room: others - {"__init__"} for room, others in graph.items()}
    return circles(graph)


def test_units_of_a_package_have_no_circle() -> None:
    found = offenders(packages(), circles_below)
    assert not found, found


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
    for name, content in files.items():
        path = tmp_path / "planted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    assert circles(unit_imports(tmp_path / "planted", "planted")) == [{"high", "middle", "low"}]
    assert circles(unit_imports(tmp_path / "planted" / "whole", "planted.whole")) == [{"__init__", "part"}]
    assert circles(unit_imports(tmp_path / "planted" / "low", "planted.low")) == []


def slow_at_start(path: Path) -> set[str]:
    return {module.split(".")[0] for module, top in imports(path) if top} & SLOW


def test_slow_modules_are_imported_where_they_are_used() -> None:
    found = offenders(python_files(), slow_at_start)
    assert not found, found


def test_planted_imports_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "import torch.nn\nfrom ethosu_sdk import __version__, npu\n"
        "def f():\n    import ethosu_sdk.steps.run, tosa_reference_model, rich.text, numpy, sys\n",
        encoding="utf-8",
    )
    assert forbidden(path, "readers") == {"npu", "steps"}
    assert forbidden(path, "npu") == {"steps", "torch", "tosa_reference_model", "rich"}
    assert slow_at_start(path) == {"torch"}
    assert offenders([path], slow_at_start) == f"{path}: {{'torch'}}"


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


def rich_by_hand(path: Path) -> set[str]:
    """Rich's own console and escape let the codes through that base/terminal.py stops."""
    found = {
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich")
        for alias in node.names
    }
    used_as_type = path == PACKAGE / "steps" / "inspect" / "inspect_command.py"  # below TYPE_CHECKING
    return found & ({"escape", "Text"} | (set() if used_as_type else {"Console"}))


def test_one_door_to_the_terminal() -> None:
    door = PACKAGE / "console" / "terminal.py"
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
