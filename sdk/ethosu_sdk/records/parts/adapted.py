"""How the copy of a program that a runtime got differs from the program: the member `adapted` of `runtime`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.records.common import PositiveCount, Sha256, Some, Text
from ethosu_sdk.records.kind import Part, about


class AdaptedOperator(Part):
    name: Annotated[Text, about("the operator that the program calls")]
    called: Annotated[
        Text, about("the operator that the copy calls instead, in the form that the runtime has")
    ]
    calls: PositiveCount
    changes: Some[Text]


class Adapted(Part):
    """How the copy of the program that the runtime got differs from the program; absent where it got the program
    itself."""

    program_sha256: Annotated[Sha256, about("of the copy")]
    operators: Some[AdaptedOperator]
