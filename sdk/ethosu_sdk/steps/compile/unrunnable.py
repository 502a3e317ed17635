"""Programs that were made and do not run: which operator it is, at which line, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ethosu_sdk import aot
from ethosu_sdk.errors import InputError
from ethosu_sdk.records.compile import Check, CpuOperator
from ethosu_sdk.results import source_place

_OPERATOR = re.compile(r"\b[A-Za-z_]\w*::\w+(\.\w+)?")
_DELEGATE = (
    "the NPU's commands are wrong: --no-delegate keeps all operators on the CPU; a `quantizer` in the "
    "model's file keeps single operators there (docs/guide/model-files.md)"
)
_KERNEL = "the CPU's kernel refuses the call: use other operators, or compute it outside of the model"


def refusal(check: Check, cpu_operators: Sequence[CpuOperator], method: str, *, recorded: bool) -> InputError:
    """The error for a program whose `check` failed before it gave outputs; `method` begins the message; `recorded`:
    its record is on stdout."""
    reason = check.reason or ""
    name = _OPERATOR.search(reason)
    rows = [row for row in cpu_operators if name and row.name == name[0]]
    text, hint = f"{method}the program that was made does not run: {reason}", _DELEGATE
    if rows:
        hint = _KERNEL
        places = {source_place.place(site.source) for site in rows[0].sites if site.source is not None}
        text += f" (called at {'; '.join(sorted(places))})" if places else ""
        known = aot.refusal_of(rows[0].name)
        if known:
            text, hint = f"{text}; {known.reason}", known.way_out
    return InputError(text, hint, recorded=recorded)
