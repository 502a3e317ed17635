"""``zoo-list/1``, from which schemas/zoo-list.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records.common import Count, Document, PositiveCount, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind, about


class Input(Part):
    dtype: Text
    shape: tuple[PositiveCount, ...]


class ZooModel(Part):
    name: Text
    model: Annotated[str, Meta(pattern="^zoo:", description="what `compile` and `run` take")]
    task: Text
    summary: Text
    inputs: Some[Input]
    quantize: Annotated[Literal["int8", "int16", "none"], about("what the model is meant for")]
    weights: Literal["none", "random", "trained", "pretrained"]
    parameters: Count
    needs: Annotated[tuple[Text, ...], about("packages that carry weights and data, as pip takes them")]
    missing: Annotated[tuple[Text, ...], about("those of `needs` that are not installed")]


class ZooList(Document[Literal["pass"]], tag_field="schema", tag="zoo-list/1"):
    """What `ethosu-sdk zoo` lists."""

    models: Some[ZooModel]


KIND = RecordKind(ZooList)
