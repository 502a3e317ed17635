"""What is installed here: Python distributions and Debian packages, with versions and licences."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import proc, tools
from ethosu_sdk.errors import ToolError
from ethosu_sdk.files import hashing

_DPKG_TIMEOUT_S = 30.0
_FIELDS = (
    "binary:Package",
    "Version",
    "Architecture",
    "db:Status-Status",
    "source:Package",
    "source:Version",
)
_OWN_QEMU = "qemu-corstone"
_COPYRIGHT = "/usr/share/doc/{name}/copyright"
_DEP5_LICENCE = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE)
_DEP5_FORMAT = re.compile(r"\AFormat(?:-Specification)?:", re.IGNORECASE)
_LONGEST_NAME = 120  # some distributions put the licence's whole text where its name belongs


@dataclass(frozen=True)
class PythonDistribution:
    """One Python distribution. `licences` are as it states them; `expression` is an SPDX one where it gives that."""

    name: str  # normalised: lower case, dashes
    version: str
    summary: str
    expression: str
    licences: tuple[str, ...]
    requires: tuple[str, ...]  # as written: name, extras, versions, markers


@dataclass(frozen=True)
class OwnProgram:
    """A program that was built from a source package of Debian's and files of the SDK's."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class DebianPackage:
    """One Debian package. `licences` are those its copyright file names, when that can be read by a machine."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    licences: tuple[str, ...]


def normalised(name: str) -> str:
    """A distribution's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python() -> list[PythonDistribution]:
    """The distributions of this interpreter, by name; of several versions, the one that is imported."""
    found: dict[str, PythonDistribution] = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata
        name = normalised(metadata["Name"] or "")
        if name and name not in found:
            found[name] = PythonDistribution(
                name=name,
                version=distribution.version,
                summary=metadata["Summary"] or "",
                expression=metadata["License-Expression"] or "",
                licences=_python_licences(metadata),
                requires=tuple(distribution.requires or ()),
            )
    return [found[name] for name in sorted(found)]


def _python_licences(metadata: importlib.metadata.PackageMetadata) -> tuple[str, ...]:
    """From the trove classifiers, which have a fixed vocabulary, else from the free text."""
    classifiers = metadata.get_all("Classifier") or []
    names = [row.split("::")[-1].strip() for row in classifiers if row.startswith("License ::")]
    names = [name for name in names if name != "OSI Approved"]
    free = (metadata["License"] or "").strip()
    if not names and free and "\n" not in free and len(free) <= _LONGEST_NAME and free != "UNKNOWN":
        names = [free]
    return tuple(sorted(set(names)))


def debian() -> list[DebianPackage]:
    """The installed Debian packages by name; none where there is no dpkg. ToolError when dpkg-query fails."""
    query = shutil.which("dpkg-query")
    if query is None:
        return []
    form = "\\t".join(f"${{{field}}}" for field in _FIELDS) + "\\n"
    output = proc.run([query, "-W", "-f", form], timeout_s=_DPKG_TIMEOUT_S, error=ToolError).output
    rows = (line.split("\t") for line in output.splitlines())
    return sorted(
        (_debian_package(row) for row in rows if len(row) == len(_FIELDS) and row[3] == "installed"),
        key=lambda package: (package.name, package.architecture),
    )


def _debian_package(row: Sequence[str]) -> DebianPackage:
    name = row[0].split(":")[0]  # a foreign architecture follows a colon
    return DebianPackage(name, row[1], row[2], row[4], row[5], debian_licences(copyright_file(name)))


def copyright_file(name: str) -> Path:
    """Where Debian's policy puts a package's copyright file."""
    return Path(_COPYRIGHT.format(name=name))


def debian_licences(path: Path) -> tuple[str, ...]:
    """The licences that a copyright file names in the machine-readable format (DEP-5); none in another format."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    if not _DEP5_FORMAT.match(text):
        return ()
    return tuple(sorted({" ".join(name.split()) for name in _DEP5_LICENCE.findall(text)}))


def own_programs() -> list[OwnProgram]:
    """Programs of the SDK's own build that it would start here: its QEMU, where there is one."""
    found = tools.probe(_OWN_QEMU)
    if found.status != "found" or found.path is None:
        return []
    return [OwnProgram(_OWN_QEMU, found.version, hashing.sha256_file(found.path))]
