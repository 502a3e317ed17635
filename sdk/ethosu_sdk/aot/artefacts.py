"""The files of a compilation, named by the delegate's index in the finished `.pte`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk import records
from ethosu_sdk.aot import program_facts
from ethosu_sdk.aot.api import DelegateFacts
from ethosu_sdk.aot.vela_capture import VelaCapture
from ethosu_sdk.errors import BuildError

LOG_NAME = "compile.log"

_SUFFIXES = {
    "tosa": ".tosa",
    "summary_csv": ".summary.csv",
    "per_layer_csv": ".per-layer.csv",
    "debug_xml": ".debug.xml",
}
_ARTEFACT = re.compile(r"delegate\d+(\.tosa|\.summary\.csv|\.per-layer\.csv|\.debug\.xml)")


def write_delegates(folder: Path, manager: Any, captures: Sequence[VelaCapture]) -> tuple[DelegateFacts, ...]:
    """Write each delegate's artefacts and return the facts in the program's order.

    Vela may see the delegates in another order than the program has them, so they are joined by the SHA-256
    of the payload. Artefacts of an earlier compilation are removed. BuildError when a delegate has no Vela
    run.
    """
    by_digest = {capture.payload_sha256: capture for capture in captures}
    facts = []
    for index, payload in enumerate(program_facts.delegate_payloads(manager)):
        capture = by_digest.get(hashlib.sha256(payload).hexdigest())
        if capture is None:
            raise BuildError(f"delegate {index} of the program is none that Vela compiled in this run")
        facts.append(_write_one(folder, index, capture))
    written = {name for row in facts for name in _file_names(row.index).values()}
    for path in folder.iterdir():
        if _ARTEFACT.fullmatch(path.name) and path.name not in written:
            path.unlink()
    return tuple(facts)


def _file_names(index: int) -> dict[str, str]:
    return {part: f"delegate{index}{suffix}" for part, suffix in _SUFFIXES.items()}


def _write_one(folder: Path, index: int, capture: VelaCapture) -> DelegateFacts:
    names = _file_names(index)
    for part, name in names.items():
        records.write_bytes(folder / name, getattr(capture, part))
    return DelegateFacts(
        index=index,
        payload_sha256=capture.payload_sha256,
        payload_bytes=capture.payload_bytes,
        tosa_file=names["tosa"],
        tosa_sha256=records.sha256_bytes(capture.tosa),
        summary_file=names["summary_csv"],
        per_layer_file=names["per_layer_csv"],
        debug_file=names["debug_xml"],
        scratch_bytes=capture.scratch_bytes,
        scratch_fast_bytes=capture.scratch_fast_bytes,
        estimates=capture.estimates,
    )
