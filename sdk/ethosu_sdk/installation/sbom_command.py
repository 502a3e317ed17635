"""`ethosu-sdk sbom`: the Python and Debian packages installed here, as a CycloneDX 1.6 bill of materials."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ethosu_sdk import __version__
from ethosu_sdk.base import filesystem, json_text, proc, resources, tools
from ethosu_sdk.base.errors import ToolError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.simulate import arm_runners

_SDK = "ethosu-sdk"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "ethosu-sdk")
_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Trove classifiers and free texts that say exactly one licence of SPDX's list.
_SPDX = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache-2.0": "Apache-2.0",
    "BSD-2-Clause": "BSD-2-Clause",
    "BSD-3-Clause": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT": "MIT",
    "MIT License": "MIT",
    "MIT-CMU": "MIT-CMU",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}

_DPKG_TIMEOUT_S = 30.0
_FIELDS = [
    "binary:Package",
    "Version",
    "Architecture",
    "db:Status-Status",
    "source:Package",
    "source:Version",
]
_OWN_QEMU = "qemu-corstone"
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
class DebianPackage:
    """One Debian package. `licences` are those its copyright file names, when that can be read by a machine."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    licences: tuple[str, ...]


def sbom(path: Path | None, reporter: Reporter) -> None:
    """Write the bill of materials to `path`, or to stdout. Raises UsageError for a bad SOURCE_DATE_EPOCH."""
    document = make_sbom(_python_distributions(), _debian_packages(), _timestamp(), _own_qemu())
    if path is None:
        sys.stdout.write(json_text.dumps(document))
        return
    json_text.write_json(path, document)
    reporter.show(f"{len(document['components'])} components: {escape(str(path))}")
    if reporter.as_json:
        reporter.emit(document)


def make_sbom(
    python: Sequence[PythonDistribution],
    debian: Sequence[DebianPackage],
    timestamp: str | None = None,
    own: Sequence[Record] = (),
) -> Record:
    """The document. The same packages give the same bytes; a `timestamp` is in it only when one is given. `own` are
    the components of what the SDK built itself."""
    others = (row for row in python if row.name != _SDK)
    components = [*map(_python_component, others), *map(_debian_component, debian), *own]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            **({"timestamp": timestamp} if timestamp else {}),
            "lifecycles": [{"phase": "post-build"}],
            "tools": {"components": [{"type": "application", "name": _SDK, "version": __version__}]},
            "component": {
                "type": "application",
                "bom-ref": _python_ref(_SDK, __version__),
                "name": _SDK,
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": _python_ref(_SDK, __version__),
            },
        },
        "components": sorted(components, key=lambda row: str(row["bom-ref"])),
        "dependencies": _dependencies(python, debian, own),
    }
    serial = f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))}"
    schema = "http://cyclonedx.org/schema/bom-1.6.schema.json"
    return {"$schema": schema, "serialNumber": serial, **content}


def _timestamp() -> str | None:
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return None
    try:
        return datetime.datetime.fromtimestamp(int(text), datetime.UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        message = f"SOURCE_DATE_EPOCH is not a time: {text!r}"
        raise UsageError(message, "give seconds since 1970, or unset it") from error


def _python_ref(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{quote(version)}"


def _debian_ref(row: DebianPackage) -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    qualifiers = f"arch={row.architecture}"
    if {"ID", "VERSION_ID"} <= release.keys():
        qualifiers += f"&distro={release['ID']}-{release['VERSION_ID']}"
    return f"pkg:deb/{release.get('ID', 'debian')}/{quote(row.name)}@{quote(row.version)}?{qualifiers}"


def _python_component(row: PythonDistribution) -> Record:
    component: Record = {
        "type": "library",
        "bom-ref": _python_ref(row.name, row.version),
        "name": row.name,
        "version": row.version,
        **({"description": row.summary} if row.summary else {}),
        "purl": _python_ref(row.name, row.version),
    }
    if (
        row.name == arm_runners.runners_package()
    ):  # prebuilt firmware, with the licence of what is linked into it
        component["components"] = [
            {
                "type": "firmware",
                "bom-ref": f"{row.name}#{runner.folder}",
                "name": runner.folder,
                "hashes": [{"alg": "SHA-256", "content": runner.sha256}],
                "licenses": [{"expression": arm_runners.runners_licence()}],
            }
            for runner in arm_runners.all_runners()
        ]
    if row.expression:
        return component | {"licenses": [{"expression": row.expression}]}
    return component | _licences(row.licences, "its metadata names none")


def _debian_component(row: DebianPackage) -> Record:
    ref, source = _debian_ref(row), f"{row.source} {row.source_version}"
    component: Record = {
        "type": "library",
        "bom-ref": ref,
        "name": row.name,
        "version": row.version,
        "purl": ref,
    }
    locked = resources.debian_licences().get(row.name)
    if locked and not row.licences:
        licences: Record = {"licenses": [{"expression": locked}]}
    else:
        why = f"{_copyright_file(row.name)} is not in the machine-readable format"
        licences = _licences(row.licences, why)
    properties = [{"name": "ethosu-sdk:debian:source", "value": source}, *licences.pop("properties", [])]
    return component | licences | {"properties": properties}


def _own_qemu() -> list[Record]:
    """The component of the SDK's own build of QEMU, where there is one that it would start here.

    QEMU as a whole is under version 2 alone, though the files that the SDK adds are under later ones, too.
    """
    found = tools.probe(_OWN_QEMU)
    if found.status != "found" or found.path is None:
        return []
    ref = f"pkg:generic/{quote(_OWN_QEMU)}@{quote(found.version)}"
    return [
        {
            "type": "application",
            "bom-ref": ref,
            "name": _OWN_QEMU,
            "version": found.version,
            "description": "QEMU of Debian with the SDK's machine files, built by scripts/build-qemu",
            "purl": ref,
            "hashes": [{"alg": "SHA-256", "content": filesystem.sha256_file(found.path)}],
            "licenses": [{"license": {"id": "GPL-2.0-only"}}],
        }
    ]


def _licences(names: Sequence[str], why: str) -> Record:
    """The licences under their names, by SPDX's identifier where the name is one; or why they are not known."""
    if not names:
        return {"properties": [{"name": "ethosu-sdk:licence:unknown", "value": why}]}
    known = ({"id": _SPDX[name]} if name in _SPDX else {"name": name} for name in names)
    return {"licenses": [{"license": licence} for licence in known]}


def _dependencies(
    python: Sequence[PythonDistribution], debian: Sequence[DebianPackage], own: Sequence[Record]
) -> list[Record]:
    """Python's graph among what is installed; optional requirements count when they are there.

    Of the Debian packages, of which no file says what the SDK takes, the SDK is said to depend on each.
    """
    others = {*map(_debian_ref, debian), *(str(row["bom-ref"]) for row in own)}
    refs = {row.name: _python_ref(row.name, row.version) for row in python}
    refs[_SDK] = _python_ref(_SDK, __version__)
    graph: dict[str, set[str]] = {}
    for row in python:
        names = (_REQUIREMENT_NAME.match(text) for text in row.requires)
        wanted = {_normalised(match.group()) for match in names if match is not None}
        graph[refs[row.name]] = {refs[name] for name in wanted & refs.keys() - {row.name}}
    graph[refs[_SDK]] = graph.get(refs[_SDK], set()) | others
    graph |= {ref: set() for ref in others}
    return [{"ref": ref, "dependsOn": sorted(graph[ref])} for ref in sorted(graph)]


def _normalised(name: str) -> str:
    """A distribution's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _python_distributions() -> list[PythonDistribution]:
    """The distributions of this interpreter, by name; of several versions, the one that is imported."""
    found: dict[str, PythonDistribution] = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata
        name = _normalised(metadata["Name"] or "")
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


def _debian_packages() -> list[DebianPackage]:
    """The installed Debian packages by name; none where there is no dpkg. ToolError when dpkg-query fails."""
    query = shutil.which("dpkg-query")
    if query is None:
        return []
    form = "\\t".join(f"${{{field}}}" for field in _FIELDS) + "\\n"
    output = proc.run([query, "-W", "-f", form], timeout_s=_DPKG_TIMEOUT_S, error=ToolError).output
    found = []
    for row in (line.split("\t") for line in output.splitlines()):
        if len(row) == len(_FIELDS) and row[3] == "installed":
            name = row[0].split(":")[0]  # a foreign architecture follows a colon
            licences = _debian_licences(_copyright_file(name))
            found.append(DebianPackage(name, row[1], row[2], row[4], row[5], licences))
    return sorted(found, key=lambda package: (package.name, package.architecture))


def _copyright_file(name: str) -> Path:
    return Path("/usr/share/doc") / name / "copyright"


def _debian_licences(path: Path) -> tuple[str, ...]:
    """The licences that a copyright file names in the machine-readable format (DEP-5); none in another format."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    if not _DEP5_FORMAT.match(text):
        return ()
    return tuple(sorted({" ".join(name.split()) for name in _DEP5_LICENCE.findall(text)}))
