"""The flags of Vela 5.1.0 that a user may add, and why the others are refused.

Vela itself ends the process for a flag that it does not know and accepts abbreviations; so a flag is judged
here, by its whole name, before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import suggestion

_SWITCH = "no value"
_COUNT = "a whole number"
_NUMBER = "a number"

# Flag → what it takes: one of the kinds above, or the words that Vela knows. From the option list of vela.py.
ALLOWED: dict[str, str | tuple[str, ...]] = {
    "--optimise": ("Size", "Performance"),
    "--arena-cache-size": _COUNT,
    "--tensor-allocator": ("LinearAlloc", "Greedy", "HillClimb"),
    "--hillclimb-max-iterations": _COUNT,
    "--max-block-dependency": ("0", "1", "2", "3"),
    "--force-symmetric-int-weights": _SWITCH,
    "--experimental-softmax-int16-neg-exp-range": _NUMBER,
    "--disable-chaining": _SWITCH,
    "--disable-fwd": _SWITCH,
    "--disable-cascading": _SWITCH,
    "--disable-buffering": _SWITCH,
    "--disable-ifm-reuse": _SWITCH,
    "--show-cpu-operations": _SWITCH,
    "--timing": _SWITCH,
    **dict.fromkeys(
        (
            "--verbose-all",
            "--verbose-allocation",
            "--verbose-config",
            "--verbose-cycle-estimate",
            "--verbose-graph",
            "--verbose-high-level-command-stream",
            "--verbose-performance",
            "--verbose-quantization",
            "--verbose-register-command-stream",
            "--verbose-schedule",
            "--verbose-tensor-format",
            "--verbose-weights",
        ),
        _SWITCH,
    ),
}

_OTHER_OPTION = "the SDK has an option of its own for it"
_FORMAT = "the firmware reads only one format of command stream"
_ENDS = "Vela compiles nothing with it"
REFUSED: dict[str, str] = {
    "--accelerator-config": f"{_OTHER_OPTION}: --target",
    "--system-config": f"{_OTHER_OPTION}: --system-config",
    "--memory-mode": f"{_OTHER_OPTION}: --memory-mode",
    "--config": f"{_OTHER_OPTION}: --vela-config",
    "--output-dir": f"{_OTHER_OPTION}: -o",
    "--output-format": "ExecuTorch reads only Vela's raw format",
    "--cop-format": _FORMAT,
    "--separate-io-regions": _FORMAT,
    "--cpu-tensor-alignment": "the firmware aligns tensors as Vela does by default",
    "--ignore-ops": "a delegate loses the operators that Vela leaves to the CPU",
    "--enable-debug-db": "the SDK sets it already",
    "--debug-force-legacy-core": "Vela's old core does not read TOSA",
    "--debug-force-regor": "only this core of Vela reads TOSA",
    "--recursion-limit": "it would change the limit of the whole compiler process",
    "--version": _ENDS,
    "--api-version": _ENDS,
    "--supported-ops-report": _ENDS,
    "--list-config-files": _ENDS,
    "--list-configs": _ENDS,
}


def check(flags: Iterable[str]) -> None:
    """UsageError unless each of `flags` is one, written ``--NAME`` or ``--NAME=VALUE``, that may be added."""
    for flag in flags:
        name, separator, value = flag.partition("=")
        if re.search(r"\s", flag) or not name.startswith("--"):
            raise UsageError(
                f"'{flag}' is not a single flag of Vela", "write --extra-vela-flag=--NAME or --NAME=VALUE"
            )
        if name in REFUSED:
            raise UsageError(f"Vela's flag {name} cannot be added: {REFUSED[name]}")
        if name not in ALLOWED:
            raise UsageError(f"Vela has no flag {name}, or it cannot be added", suggestion(name, ALLOWED))
        wanted = ALLOWED[name]
        if not _fits(wanted, bool(separator), value):
            words = wanted if isinstance(wanted, str) else "one of: " + ", ".join(wanted)
            raise UsageError(f"Vela's flag {name} takes {words}, not '{value}'")


def _fits(wanted: str | tuple[str, ...], given: bool, value: str) -> bool:
    if wanted == _SWITCH:
        return not given
    if wanted == _COUNT:
        return re.fullmatch(r"\d+", value, re.ASCII) is not None
    if wanted == _NUMBER:
        return re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII) is not None and 0 < float(value) < 65535
    return value in wanted
