"""The support archive of `doctor --bundle`: the facts for support, without private data."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import writing
from ethosu_sdk.installation.doctor.anonymising import SHOWN_VARIABLES, Redactor
from ethosu_sdk.installation.sbom import installed_packages
from ethosu_sdk.records import Record

_SUFFIX = ".tar.gz"
_FOLDER = "ethosu-sdk-support"
_README = """Support archive of ethosu-sdk: the report of `ethosu-sdk doctor`, installed versions, and the environment
variables {names}.

Left out: every other variable, and its value wherever it stood; names of the user and of the machine; tokens and
addresses with passwords by their usual forms; paths outside of the system's folders (written as <path>). No file of
yours is in here. Check its contents before you send it.
"""


def check_path(path: Path) -> None:
    """Raise UsageError when no support archive can be written to `path`."""
    if not path.name.endswith(_SUFFIX):
        raise UsageError(
            f"a support archive is a {_SUFFIX} file, not {path.name}", f"--bundle support{_SUFFIX}"
        )
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.absolute().parent}", "create it, or choose another")


def write(path: Path, report: Record) -> None:
    """Write the archive, with `report` in it, to `path`."""
    writing.write_bytes(path, _archive(_files(report, dict(os.environ))))


def _files(report: Record, environment: dict[str, str]) -> dict[str, str]:
    redactor = Redactor(environment)
    versions = {
        "python": {row.name: row.version for row in installed_packages.python()},
        "debian": {row.name: row.version for row in installed_packages.debian()},
    }
    contents = {
        "doctor.json": redactor.value(report),
        "versions.json": redactor.value(versions),
        "environment.json": redactor.environment(environment),
    }
    texts = {name: json.dumps(content, indent=2) + "\n" for name, content in contents.items()}
    return {"README.txt": _README.format(names=", ".join(SHOWN_VARIABLES)), **texts}


def _archive(files: dict[str, str]) -> bytes:
    """A .tar.gz without times, users or groups: who made it is not in it."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
