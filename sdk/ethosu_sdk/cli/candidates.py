"""Candidates for completion by the shell, read from the tables without importing their packages.

A shell waits for this at every Tab: NumPy alone would take longer than all of it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ethosu_sdk import resources
from ethosu_sdk.program_options import Completion
from ethosu_sdk.targets import DEFAULT_TARGET, families, target_names

MODEL_SUFFIXES = (".py", ".pt2", ".pte")
_ZOO = "zoo:"
_ZOO_TABLE = "aot/zoo/zoo.toml"
_BOARDS_TABLE = "boards/profiles.toml"
_U85 = "ethos-u85"
_EVENT = re.compile(r"\d+ (\w+)")


Chosen = Mapping[str, Any]  # what the line has for other parameters, as text


def systems(_chosen: Chosen, incomplete: str) -> list[str]:
    """The SDK's board profiles, and files that can be one; nothing where folders alone are left."""
    names = [name for name in _boards() if name.startswith(incomplete)]
    files = list(_files(incomplete, (".toml",)))
    return names + (files if names or any(not name.endswith(os.sep) for name in files) else [])


def _boards() -> dict[str, Any]:
    table = tomllib.loads((resources.PACKAGE_ROOT / _BOARDS_TABLE).read_text(encoding="utf-8"))
    boards: dict[str, Any] = table["boards"]
    return boards


def _member(name: str, member: str) -> Any:
    """A member of a profile, or of the one that it is like; None when there is no such profile."""
    boards = _boards()
    while name in boards and member not in boards[name]:
        name = boards[name].get("like", "")
    return boards.get(name, {}).get(member)


def _of_system(chosen: Chosen, member: str) -> Any:
    """A member of the board profile on the line; None without one, or for a user's file."""
    return _member(chosen.get("system") or "", member)


def targets(chosen: Chosen, _incomplete: str) -> list[str]:
    """Every target, or those of the board profile."""
    return _of_system(chosen, "npus") or list(target_names())


def _target(chosen: Chosen) -> str:
    return chosen.get("target") or next(iter(_of_system(chosen, "npus") or []), DEFAULT_TARGET)


def system_configs(chosen: Chosen, _incomplete: str) -> list[str]:
    """The system configurations of the board profile, or of the target's family; all of them if the target does not
    exist."""
    of_board = _of_system(chosen, "systems")
    if of_board:
        return list(of_board)
    target = chosen.get("target") or ""
    rows = [row for row in families().values() if target.startswith(f"{row.name}-")] or families().values()
    return [name for row in rows for name in row.system_configs]


def memory_modes(chosen: Chosen, _incomplete: str) -> list[str]:
    """The memory modes of the system configuration, or of the default of the board profile or target's family."""
    target, system_config = _target(chosen), chosen.get("system_config")
    of_board = _of_system(chosen, "systems")
    if of_board:
        return list(of_board.get(system_config) or next(iter(of_board.values())))
    found: dict[str, None] = {}
    for row in families().values():
        if target.startswith(f"{row.name}-"):
            found |= dict.fromkeys(row.system_configs.get(system_config or row.default_system_config, ()))
    return list(found) or _every_mode()


def _every_mode() -> list[str]:
    modes = (mode for row in families().values() for known in row.system_configs.values() for mode in known)
    return list(dict.fromkeys(modes))


def models(_chosen: Chosen, incomplete: str) -> list[str]:
    """The models of the zoo, files that can be a model, and folders that may contain such files.

    Nothing where folders alone are left: the shell's own completion goes on into them.
    """
    names = tomllib.loads((resources.PACKAGE_ROOT / _ZOO_TABLE).read_text(encoding="utf-8"))
    zoo = [f"{_ZOO}{name}" for name in names if f"{_ZOO}{name}".startswith(incomplete)]
    files = list(_files(incomplete, MODEL_SUFFIXES))
    return zoo + (files if zoo or any(not name.endswith(os.sep) for name in files) else [])


def programs(_chosen: Chosen, incomplete: str) -> list[str]:
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


def events(chosen: Chosen, incomplete: str) -> list[str]:
    """The PMU events of the target, or of every NPU for a MODEL.pte. Several are separated by commas."""
    ready = str(chosen.get("model") or "").endswith(".pte")
    target = "" if ready else _target(chosen)
    table = _module("npu/tables/events.py")
    kinds = [table.EVENTS_U55, table.EVENTS_U85]
    if target:
        kinds = [table.EVENTS_U85 if target.startswith(_U85) else table.EVENTS_U55]
    done, comma, _ = incomplete.rpartition(",")
    already = done.split(",")
    names = dict.fromkeys(name for text in kinds for name in _EVENT.findall(text))
    return [f"{done}{comma}{name}" for name in names if name not in already]


def _module(name: str) -> ModuleType:
    """Import a module that only holds data, without its package."""
    path = resources.PACKAGE_ROOT / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OFFERS: dict[Completion, Callable[[Chosen, str], list[str]]] = {
    "targets": targets,
    "system_configs": system_configs,
    "memory_modes": memory_modes,
    "systems": systems,
    "models": models,
    "programs": programs,
    "events": events,
}
