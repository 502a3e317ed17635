"""What the shell can complete: names from the tables, without what else the tables' packages import.

A shell waits for this at every Tab: NumPy alone would take longer than all of it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ethosu_sdk import resources
from ethosu_sdk.boards import BOARDS
from ethosu_sdk.targets import families, target_names

MODEL_SUFFIXES = (".py", ".pt2", ".pte")
_ZOO = "zoo:"
_U85 = "ethos-u85"
_EVENT = re.compile(r"\d+ (\w+)")


def targets() -> list[str]:
    """Every target."""
    return list(target_names())


def system_configs(target: str) -> list[str]:
    """Those of the family of `target`; every one for a target that does not exist."""
    rows = [row for row in families().values() if target.startswith(f"{row.name}-")] or families().values()
    return [name for row in rows for name in row.system_configs]


def memory_modes(target: str, system_config: str | None) -> list[str]:
    """Those that go with `target` and `system_config`, or the family's default."""
    found: dict[str, None] = {}
    for row in families().values():
        if target.startswith(f"{row.name}-"):
            found |= dict.fromkeys(row.system_configs.get(system_config or row.default_system_config, ()))
    return list(found) or _every_mode()


def _every_mode() -> list[str]:
    modes = (mode for row in families().values() for known in row.system_configs.values() for mode in known)
    return list(dict.fromkeys(modes))


def boards() -> list[str]:
    """Every board."""
    return list(BOARDS)


def models(incomplete: str) -> list[str]:
    """Models of the zoo, and files that can be a model, with the folders on the way to others.

    Nothing where folders alone are left: the shell's own completion goes on into them.
    """
    zoo = [f"{_ZOO}{name}" for name in _table("aot/zoo/zoo.toml") if f"{_ZOO}{name}".startswith(incomplete)]
    files = list(_files(incomplete, MODEL_SUFFIXES))
    return zoo + (files if zoo or any(not name.endswith(os.sep) for name in files) else [])


def programs(incomplete: str) -> list[str]:
    """Files that can be a ready program, as :func:`models`."""
    files = list(_files(incomplete, (".pte",)))
    return files if any(not name.endswith(os.sep) for name in files) else []


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    folder, _, start = incomplete.rpartition(os.sep)
    place = Path(f"{folder}{os.sep}" if os.sep in incomplete else ".").expanduser()
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = incomplete.removesuffix(start) + entry.name
        if entry.name.startswith(".") or not entry.name.startswith(start):
            continue
        if entry.is_dir():
            yield name + os.sep
        elif entry.name.endswith(suffixes):
            yield name


def events(target: str, incomplete: str) -> list[str]:
    """PMU events of `target`; of every NPU when it is empty. `incomplete` may hold several, with commas between."""
    table = _module("npu/tables/events.py")
    kinds = [table.EVENTS_U55, table.EVENTS_U85]
    if target:
        kinds = [table.EVENTS_U85 if target.startswith(_U85) else table.EVENTS_U55]
    done, comma, _ = incomplete.rpartition(",")
    chosen = done.split(",")
    names = dict.fromkeys(name for text in kinds for name in _EVENT.findall(text))
    return [f"{done}{comma}{name}" for name in names if name not in chosen]


def _table(name: str) -> dict[str, object]:
    return tomllib.loads((resources.PACKAGE_ROOT / name).read_text(encoding="utf-8"))


def _module(name: str) -> ModuleType:
    """A module that is data alone, without the package around it."""
    path = resources.PACKAGE_ROOT / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
