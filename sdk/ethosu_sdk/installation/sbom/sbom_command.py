"""`ethosu-sdk sbom`: what is installed here, Python and Debian, as a CycloneDX 1.6 bill of materials."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from ethosu_sdk import __version__, runtimes, toolchain_lock
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import json_text
from ethosu_sdk.installation.sbom import installed_packages
from ethosu_sdk.installation.sbom.installed_packages import (
    DebianPackage,
    OwnProgram,
    PythonDistribution,
    normalised,
)
from ethosu_sdk.records import Record
from ethosu_sdk.runtimes import PrebuiltRunner

_SDK = "ethosu-sdk"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "ethosu-sdk")
_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PROPERTY = "ethosu-sdk:licence"
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


def sbom(path: Path | None, reporter: Reporter) -> None:
    """Write the bill of materials to `path`, or to stdout. Raises UsageError for a bad SOURCE_DATE_EPOCH."""
    document = make(
        installed_packages.python(),
        installed_packages.debian(),
        _timestamp(),
        own=installed_packages.own_programs(),
    )
    if path is None:
        sys.stdout.write(json_text.dumps(document))
        return
    json_text.write_json(path, document)
    reporter.show(f"{len(document['components'])} components: {escape(str(path))}")
    if reporter.as_json:
        reporter.emit(document)


def make(
    python: Sequence[PythonDistribution],
    debian: Sequence[DebianPackage],
    timestamp: str | None = None,
    own: Sequence[OwnProgram] = (),
) -> Record:
    """The document. The same packages give the same bytes; a `timestamp` is in it only when one is given."""
    others = [row for row in python if row.name != _SDK]
    components = [
        *map(_python_component, others),
        *map(_debian_component, debian),
        *map(_own_component, own),
    ]
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
    serial = uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "serialNumber": f"urn:uuid:{serial}",
        **content,
    }


def _timestamp() -> str | None:
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return None
    try:
        return datetime.datetime.fromtimestamp(int(text), datetime.UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"SOURCE_DATE_EPOCH is not a time: {text!r}", "give seconds since 1970, or unset it"
        ) from error


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
    if row.name == runtimes.package_name():
        component["components"] = list(map(_runner_component, runtimes.runners()))
    if row.expression:
        return component | {"licenses": [{"expression": row.expression}]}
    return component | _licences(row.licences, "its metadata names none")


def _runner_component(runner: PrebuiltRunner) -> Record:
    """A prebuilt firmware that a package carries, with the licence of what is linked into it."""
    return {
        "type": "firmware",
        "bom-ref": f"{runtimes.package_name()}#{runner.folder}",
        "name": runner.folder,
        "hashes": [{"alg": "SHA-256", "content": runner.sha256}],
        "licenses": [{"expression": runtimes.licence()}],
    }


def _debian_component(row: DebianPackage) -> Record:
    source = f"{row.source} {row.source_version}"
    why = f"{installed_packages.copyright_file(row.name)} is not in the machine-readable format"
    component: Record = {
        "type": "library",
        "bom-ref": _debian_ref(row),
        "name": row.name,
        "version": row.version,
        "purl": _debian_ref(row),
    }
    locked = toolchain_lock.debian_licences().get(row.name)
    if locked and not row.licences:
        licences: Record = {"licenses": [{"expression": locked}]}
    else:
        licences = _licences(row.licences, why)
    properties = [{"name": "ethosu-sdk:debian:source", "value": source}, *licences.pop("properties", [])]
    return component | licences | {"properties": properties}


def _own_ref(row: OwnProgram) -> str:
    return f"pkg:generic/{quote(row.name)}@{quote(row.version)}"


def _own_component(row: OwnProgram) -> Record:
    """QEMU as a whole is under version 2 alone, though the files that the SDK adds are under later ones, too."""
    return {
        "type": "application",
        "bom-ref": _own_ref(row),
        "name": row.name,
        "version": row.version,
        "description": "QEMU of Debian with the SDK's machine files, built by scripts/build-qemu",
        "purl": _own_ref(row),
        "hashes": [{"alg": "SHA-256", "content": row.sha256}],
        "licenses": [{"license": {"id": "GPL-2.0-only"}}],
    }


def _licences(names: Sequence[str], why: str) -> Record:
    """The licences under their names, by SPDX's identifier where the name is one; or why they are not known."""
    if not names:
        return {"properties": [{"name": f"{_PROPERTY}:unknown", "value": why}]}
    return {
        "licenses": [{"license": {"id": _SPDX[name]} if name in _SPDX else {"name": name}} for name in names]
    }


def _dependencies(
    python: Sequence[PythonDistribution], debian: Sequence[DebianPackage], own: Sequence[OwnProgram]
) -> list[Record]:
    """Python's graph among what is installed; optional requirements count when they are there.

    Of the Debian packages, of which no file says what the SDK takes, the SDK is said to depend on each.
    """
    others = {*map(_debian_ref, debian), *map(_own_ref, own)}
    refs = {row.name: _python_ref(row.name, row.version) for row in python} | {
        _SDK: _python_ref(_SDK, __version__)
    }
    graph = {refs[row.name]: _required(row, refs) for row in python}
    graph[refs[_SDK]] = graph.get(refs[_SDK], set()) | others
    graph |= {ref: set() for ref in others}
    return [{"ref": ref, "dependsOn": sorted(graph[ref])} for ref in sorted(graph)]


def _required(row: PythonDistribution, refs: dict[str, str]) -> set[str]:
    names = (_REQUIREMENT_NAME.match(text) for text in row.requires)
    wanted = {normalised(match.group()) for match in names if match is not None}
    return {refs[name] for name in wanted & refs.keys() - {row.name}}
