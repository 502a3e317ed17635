"""What `runtime` in run.json says of the ELF that ran: its digest, and what was read back of it."""

from __future__ import annotations

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.records import Record
from ethosu_sdk.simulators import LoadedElf


def part(sha256: str, loaded: LoadedElf | None) -> Record:
    """The members for the ELF that was built with the digest `sha256`. SimulationError when another was loaded."""
    if loaded is None:
        return {"elf_sha256": sha256}
    if loaded.sha256 != sha256:
        raise SimulationError(
            f"the ELF file changed between its build and its run: its SHA-256 is {loaded.sha256}, not {sha256}",
            "run it again; does another command write to the same folder?",
        )
    rows = [
        {"address": row.address, "bytes": row.size_bytes, "sha256": row.sha256} for row in loaded.segments
    ]
    return {"elf_sha256": sha256, "loaded": {"status": "compared", "segments": rows}}


def unavailable(runtime: Record) -> list[Record]:
    """Why there is nothing that was read back, where there is not."""
    if "loaded" in runtime:
        return []
    return [{"path": "/runtime/loaded", "reason": "the simulator does not show its memory before the run"}]
