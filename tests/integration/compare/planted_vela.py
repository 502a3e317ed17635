"""Copies of Vela with a planted change, in the SDK's cache under versions of their own."""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

from ethosu_sdk.base import cache, filesystem, tools

OWN = tools.package_version("ethos-u-vela") or ""


def plant(changes: Mapping[str, str]) -> Path:
    """Make them, by version: what is added to the end of ethosu/vela/vela.py. The folder of all versions."""
    spec = importlib.util.find_spec("ethosu")
    assert spec is not None
    assert spec.submodule_search_locations
    installed = Path(next(iter(spec.submodule_search_locations)))
    place = cache.directory("vela")
    with filesystem.locked_folder(place):
        for version, change in changes.items():
            folder, file = place / version / "ethosu", Path("vela") / "vela.py"
            wanted = f"{(installed / file).read_text(encoding='utf-8')}\n# A copy of {OWN}\n{change}"
            if not (folder / file).is_file() or (folder / file).read_text(encoding="utf-8") != wanted:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(installed, folder)
                (folder / file).write_text(wanted, encoding="utf-8")
    return place
