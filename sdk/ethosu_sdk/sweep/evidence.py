"""Check that a task's folder still holds what the task wrote, by the digests in its manifest."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path

from ethosu_sdk.errors import SdkError
from ethosu_sdk.files import hashing, json_text
from ethosu_sdk.results import bundle


def is_any(_: str) -> bool:
    """Whether a file counts: each does."""
    return True


def is_record(name: str) -> bool:
    """Whether a file is a record of a cell, not one of its arrays or programs, which may be large."""
    return name.endswith(".json")


def problem(folder: Path, needed: str, counts: Callable[[str], bool]) -> str:
    """Why the files of `folder` whose names `counts` picks are no evidence; nothing when its manifest lists them as
    they are, and one whose name fits the pattern `needed` among them.

    The manifest is not held against its schema: there is one for each of many thousand cells.
    """
    try:
        manifest = json_text.read_json(folder / bundle.MANIFEST_NAME)
        if manifest["status"] != bundle.COMPLETE:
            return f"{folder} is incomplete"
        listed = {row["path"]: row["sha256"] for row in manifest["files"] if counts(row["path"])}
        if not fnmatch.filter(listed, needed):
            return f"the manifest of {folder} does not list {needed}"
        changed = next((name for name, sha256 in listed.items() if _digest(folder / name) != sha256), None)
    except SdkError as error:
        return error.message
    except (AttributeError, KeyError, TypeError):
        return f"the manifest of {folder} is damaged"
    return "" if changed is None else f"{folder / changed} is not what was written"


def _digest(path: Path) -> str:
    return hashing.sha256_file(path) if path.is_file() else ""
