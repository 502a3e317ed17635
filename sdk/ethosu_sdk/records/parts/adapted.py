"""How the copy of a program that a runtime got differs from the program: the member `adapted` of `runtime`."""

from __future__ import annotations

from ethosu_sdk.records.kind import Part


class AdaptedOperator(Part):
    name: str
    called: str
    calls: int
    changes: tuple[str, ...]


class Adapted(Part):
    program_sha256: str
    operators: tuple[AdaptedOperator, ...]
