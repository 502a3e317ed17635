"""`ethosu-sdk verify`: build the firmware of a record again, from nothing, and compare."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ethosu_sdk import cache, provenance, pte, records, schema, tools
from ethosu_sdk.commands import build
from ethosu_sdk.commands.shared import host_facts, locations, results
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.commands.shared.terminal import escape
from ethosu_sdk.errors import InputError, VerdictError
from ethosu_sdk.firmware_build import BuildOptions, resident
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.records import Record

_SCHEMA = "verify-result/1"
_RESIDENT_ELF = f"{resident.EXECUTABLE}.elf"
# Names of `provenance.tools` that are not those of tools.toml.
_PROGRAMS = {"qemu": "qemu-system-arm"}
_SHOWN = 16  # digits of a digest


@dataclass(frozen=True)
class _Rebuilt:
    """Digests of what was built again."""

    elf: str
    map: str
    build_key: str


def verify(path: Path, model: Path | None, reporter: Reporter) -> None:
    """Build again what the build or run record at `path` tells of, and compare digests and tools' versions.

    `model` is the `.pte`, by default the file of the record's model beside the record. Raises VerdictError when
    something differs, InputError for a record or model that is missing, damaged, or of no firmware.
    """
    start = time.monotonic()
    record = _read(path)
    pte_path = _model(path, record, model)
    checks = [_check("model", record["model"]["sha256"], records.sha256_file(pte_path))]
    causes = []
    if _same(checks):
        with reporter.stage("building the firmware again, from nothing"):
            rebuilt = _rebuild(record, pte_path)
        checks += _digests(record, rebuilt)
        causes = list(_causes(record, rebuilt, checks))
    else:
        causes = ["the model is not the one that the record is about: nothing was built"]
    result: Record = {
        "schema": _SCHEMA,
        "status": "pass" if _same(checks) else "fail",
        "created": records.timestamp(),
        "tool": provenance.tool(),
        "record": {"file": path.name, "schema": record["schema"], "sha256": records.sha256_file(path)},
        "checks": checks,
        "causes": causes,
        "wall_time_s": round(time.monotonic() - start, 3),
        "host": host_facts.host(),
    }
    schema.check(result, "the result of verify")
    _show(result, reporter)
    reporter.emit(result)
    if result["status"] != "pass":
        differing = ", ".join(row["name"] for row in checks if row["status"] == "differs")
        raise VerdictError(
            f"{path} is not reproduced: {differing} differ(s)", "; ".join(causes), recorded=True
        )


def _read(path: Path) -> Record:
    record = results.read(path)
    if record["schema"] not in (results.BUILD, results.RUN):
        raise InputError(
            f"{path} is a {record['schema']}",
            f"give a {results.BUILD} or {results.RUN}: build.json or run.json",
        )
    if record["schema"] == results.RUN and any(
        row["role"] == "runner" for row in record["provenance"]["inputs"]
    ):
        raise InputError(
            f"{path} tells of a run on Arm's prebuilt runner",
            "nothing was built for it that could be built again",
        )
    if record["schema"] == results.RUN and _firmware(record) is None:
        raise InputError(
            f"{path} tells of a run without a firmware, on the simulator '{record['simulator']['name']}'",
            "there is nothing to build; run it again and compare the outputs' digests",
        )
    return record


def _model(path: Path, record: Record, model: Path | None) -> Path:
    beside = path.parent / record["model"]["file"]
    if model is None and not beside.is_file():
        raise InputError(
            f"the record's model, {beside.name}, does not lie beside it", "give it with --model FILE.pte"
        )
    return locations.require_pte(model or beside)


def _firmware(record: Record) -> Record | None:
    """The firmware's row among the inputs of a run."""
    return next((row for row in record["provenance"]["inputs"] if row["role"] == "firmware"), None)


def _options(record: Record) -> BuildOptions:
    """As the record was built. For a run, with the leave to spill, which changes nothing for what fits."""
    if record["schema"] == results.BUILD:
        options = record["options"]
        return BuildOptions(
            board=record["board"],
            simulator=options.get("simulator"),
            inferences=options["inferences"],
            allow_spill=options["allow_spill"],
        )
    return BuildOptions(
        board=record["board"],
        simulator=record["simulator"]["name"],
        inferences=record["inferences"],
        allow_spill=True,
    )


def _rebuild(record: Record, path: Path) -> _Rebuilt:
    firmware = _firmware(record)
    with (
        records.temporary_directory("ethosu-sdk-verify-", Path(tempfile.gettempdir())) as temporary,
        cache.elsewhere(temporary / "cache"),
    ):
        folder = records.make_directory(temporary / "out")
        made: Executable
        if firmware is not None and firmware["file"] == _RESIDENT_ELF:
            made = resident.build(folder, record["board"])
        else:
            made = build.build_in(
                path, pte.read(path), folder, _options(record), Reporter(quiet=True)
            ).firmware
        return _Rebuilt(made.elf_sha256, records.sha256_file(made.map), made.build_key)


def _digests(record: Record, rebuilt: _Rebuilt) -> list[Record]:
    firmware = _firmware(record)
    checks = []
    if record["schema"] == results.BUILD:
        checks += [
            _check("elf", record["elf"]["sha256"], rebuilt.elf),
            _check("map", record["map"]["sha256"], rebuilt.map),
        ]
    elif firmware is not None:
        checks.append(_check("elf", firmware["sha256"], rebuilt.elf))
    for row in record["provenance"]["tools"]:
        known = tools.table().get(_PROGRAMS.get(row["name"], row["name"]))
        found = tools.probe(known.name).version if known is not None else ""
        checks.append(_check(f"version of {row['name']}", row["version"], found))
    return checks


def _check(name: str, recorded: str, found: str) -> Record:
    if not found:
        return {"name": name, "status": "unknown", "recorded": recorded}
    return {
        "name": name,
        "status": "agrees" if recorded == found else "differs",
        "recorded": recorded,
        "found": found,
    }


def _same(checks: list[Record]) -> bool:
    return all(row["status"] != "differs" for row in checks)


def _causes(record: Record, rebuilt: _Rebuilt, checks: list[Record]) -> Iterator[str]:
    """Why something differs, as far as that can be told."""
    for row in checks:
        if row["name"].startswith("version of") and row["status"] == "differs":
            yield f"{row['name']} is {row['found']} here, {row['recorded']} in the record"
    if all(row["status"] == "agrees" for row in checks if row["name"] in ("elf", "map")):
        return
    here, there = provenance.tool(), record["tool"]
    if here != there:
        words = [" ".join(filter(None, (row["version"], row.get("git", "")))) for row in (here, there)]
        yield f"ethosu-sdk is {words[0]} here, {words[1]} in the record"
    if record.get("build_key") == rebuilt.build_key:
        yield "sources, settings and tools are the same: the build is not reproducible, or the record is wrong"
    elif "build_key" in record:
        yield "the firmware's sources, its settings or the tools are not those of the record (build_key)"


def _show(result: Record, reporter: Reporter) -> None:
    colours = {"agrees": "green", "differs": "red", "unknown": "yellow"}
    table = Table("", "", "recorded", "here", box=None, pad_edge=False)
    for row in result["checks"]:
        colour = colours[row["status"]]
        table.add_row(
            escape(row["name"]),
            f"[{colour}]{row['status']}[/{colour}]",
            escape(row["recorded"][:_SHOWN]),
            escape(row.get("found", "")[:_SHOWN]),
        )
    reporter.show(table)
    for cause in result["causes"]:
        reporter.show(f"why: {escape(cause)}")
    if result["status"] == "pass":
        reporter.show(f"{escape(result['record']['file'])}: the firmware was built again, byte for byte.")
