"""The members of a saved program, each by what torch does with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ethosu_sdk.aot.model.saved_program import graph, pickles
from ethosu_sdk.aot.model.saved_program.finding import UnsafeError, shown

_Check = Callable[[str, memoryview], None]
_ROOT_MARK = "/archive_format"


def check(found: Mapping[str, memoryview]) -> None:
    """UnsafeError when one of the members `found`, by their names, could run code when torch loads the program."""
    first = next(iter(found), "")
    if any(name.endswith(_ROOT_MARK) for name in found):
        root = first.partition("/")[0] + "/"  # torch takes the first member's, and is blind to all others
        stray = [name for name in found if not name.startswith(root)]
        if stray:
            raise UnsafeError(f"member {shown(stray[0])} lies outside of the archive's folder {shown(root)}")
        table, rows = _NOW, {name.removeprefix(root): data for name, data in found.items()}
    else:
        table, rows = _BEFORE_2_8, dict(found)
    for name, data in rows.items():
        _check_of(table, name)(name, data)
    _check_payloads(rows)


def _check_of(table: Mapping[str, _Check], name: str) -> _Check:
    for pattern, found in table.items():
        if re.fullmatch(pattern, name):
            return found
    raise UnsafeError(f"torch.export.save writes no member {shown(name)}")


def _nothing(name: str, data: memoryview) -> None:
    """Bytes, numbers and texts that torch does not interpret."""


def _object(name: str, data: memoryview) -> None:
    raise UnsafeError(f"{name} is a pickled object of a custom class")


def _library(name: str, data: memoryview) -> None:
    raise UnsafeError(f"{name} belongs to a library compiled by AOTInductor, which torch would load and run")


def _program(name: str, data: memoryview) -> None:
    graph.check(name, json_object(name, data))


def _payload_config(name: str, data: memoryview) -> None:
    json_object(name, data)


_FACTS = r"(?:\.data/(?:version|serialization_id)|\.format_version|\.storage_alignment|byteorder|version)"
# Patterns of names inside the archive's folder → the check. The first one that fits counts.
_NOW: dict[str, _Check] = {
    _FACTS + r"|archive_(?:format|version)": _nothing,
    r"models/[^/]+\.json": _program,
    r"data/weights/weight_\d+|data/constants/tensor_\d+": _nothing,  # those that are pickles: see _check_payloads
    r"data/(?:weights/[^/]+_weights|constants/[^/]+_constants)_config\.json": _payload_config,
    r"data/(?:weights|constants|sample_inputs)/[^/]+\.pt": pickles.check,
    r"data/constants/(?:custom_obj|opaque_obj)_\d+": _object,
    r"data/aotinductor/.*": _library,
    r"(?:extra|data/executorch)/.*": _nothing,
}
# What torch before 2.8 wrote, in no folder.
_BEFORE_2_8: dict[str, _Check] = {
    _FACTS: _nothing,
    r"serialized_exported_program\.json": _program,
    r"serialized_(?:state_dict|constants|example_inputs)\.(?:pt|json)": pickles.check,
    r"extra_files/.*": _nothing,
}


def json_object(name: str, data: memoryview) -> dict[str, Any]:
    """The JSON object in a member. UnsafeError when it is none."""
    try:
        value = json.loads(bytes(data).decode())
    except (ValueError, RecursionError) as error:
        raise UnsafeError(f"{name} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UnsafeError(f"{name} is not a JSON object")
    return value


def _check_payloads(rows: Mapping[str, memoryview]) -> None:
    """What the configurations of weights and constants say is pickled, as torch unpickles it without any check."""
    for name, data in rows.items():
        if not re.fullmatch(r"data/(?:weights|constants)/[^/]+_config\.json", name):
            continue
        folder = name.rpartition("/")[0]
        config = json_object(name, data).get("config")
        if not isinstance(config, dict):
            raise UnsafeError(f"{name} has no configuration")
        for fqn, row in config.items():
            path = row.get("path_name") if isinstance(row, dict) else None
            if not isinstance(path, str) or not re.fullmatch(r"(?:weight|tensor)_\d+", path):
                raise UnsafeError(
                    f"{name}: {shown(fqn)} is stored in {shown(path)}, which is not a plain tensor"
                )
            graph.check_plain(name, fqn)
            if row.get("use_pickle") is not False and f"{folder}/{path}" in rows:
                pickles.check(f"{folder}/{path}", rows[f"{folder}/{path}"])
