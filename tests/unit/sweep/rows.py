"""Rows of a sweep, as its store gives them."""

from typing import Any

from ethosu_sdk.base.filesystem import sha256_bytes

Row = dict[str, Any]


def row(**members: Any) -> Row:
    """A cell that passed, with `members` in place of its own. Its name follows from what makes it another cell."""
    found: Row = {
        "model": "zoo:ds_cnn",
        "model_sha256": "a" * 64,
        "target": "ethos-u55-128",
        "npu": "ethos-u55",
        "macs": 128,
        "system_config": "Ethos_U55_High_End_Embedded",
        "memory_mode": "Shared_Sram",
        "quantize": "int8",
        "vela": "5.1.0",
        "simulator": "qemu",
        "board": "corstone-300",
        "inputs": "example",
        "status": "pass",
        "error": None,
        "exit_code": 0,
        "message": None,
        "hint": None,
        "seconds": 12.5,
        "program_bytes": 55_000,
        "npu_cycles": 400_000,
        "npu_cycles_source": "modelled",
        "clock_mhz": 500.0,
        "time_ms": 0.8,
        "sram_bytes": 90_000,
        "flash_bytes": 300_000,
        "npu_macs": 2_700_000,
        "operators_npu": 20,
        "operators_cpu": 0,
        "sqnr_db": 31.0,
        **members,
    }
    if "npu_cycles" in members and "time_ms" not in members and members["npu_cycles"] is not None:
        found["time_ms"] = members["npu_cycles"] / (found["clock_mhz"] * 1e3)
    kinds = ("model", "target", "system_config", "memory_mode", "quantize", "vela", "simulator", "inputs")
    found.setdefault("cell", sha256_bytes("|".join(str(found[name]) for name in kinds).encode())[:12])
    found.setdefault("folder", f"cells/{found['cell']}")
    return found


def without_result(status: str, message: str, **members: Any) -> Row:
    """A cell that did not get as far as figures."""
    figures = ("program_bytes", "npu_cycles", "npu_cycles_source", "clock_mhz", "time_ms", "sram_bytes")
    figures += ("flash_bytes", "npu_macs", "operators_npu", "operators_cpu", "sqnr_db")
    made = row(**members)
    return {**made, **dict.fromkeys(figures), "status": status, "message": message, "exit_code": 3}
