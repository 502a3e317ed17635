"""``zoo-list/1``: schemas/zoo-list.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Document
from ethosu_sdk.records.kind import Part, RecordKind


class Input(Part):
    dtype: str
    shape: tuple[int, ...]


class ZooModel(Part):
    name: str
    model: str
    task: str
    summary: str
    inputs: tuple[Input, ...]
    quantize: Literal["int8", "int16", "none"]
    weights: Literal["none", "random", "trained", "pretrained"]
    parameters: int
    needs: tuple[str, ...]
    missing: tuple[str, ...]


class ZooList(Document[Literal["pass"]], tag_field="schema", tag="zoo-list/1"):
    """What `ethosu-sdk zoo` lists."""

    models: tuple[ZooModel, ...]


KIND = RecordKind(ZooList)
