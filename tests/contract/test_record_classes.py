"""The class of every kind of record has the members of its JSON Schema: the same names, types, and optional ones."""

import copy
import json
import types
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from ethosu_sdk.records import kinds
from ethosu_sdk.records.kind import Part, RecordKind
from tests.places import ROOT

Json = dict[str, Any]
# What a value may be: "str", a constant such as ("run",), or a list, map or object with what is in it.
Shape = frozenset[Any]

DOCUMENTS: dict[str, Json] = {
    document["$id"]: document
    for document in (
        json.loads(path.read_text(encoding="utf-8")) for path in ROOT.glob("schemas/*.schema.json")
    )
}
_TYPES = {"string": ("str",), "integer": ("int",), "number": ("int", "float"), "boolean": ("bool",)}


def document_of(kind: RecordKind[Any]) -> Json:
    name, version = kind.schema.split("/")
    return DOCUMENTS[f"urn:ethosu-sdk:schema:{name}:{version}"]


def resolved(node: Json, document: Json) -> tuple[Json, Json]:
    """What a reference leads to, and the document that it stands in."""
    while "$ref" in node:
        urn, _, pointer = node["$ref"].partition("#/")
        node = document = DOCUMENTS[urn] if urn else document
        for part in pointer.split("/"):
            node = node[part]
    return node, document


def shape_of_schema(node: Json, document: Json) -> Shape:
    node, document = resolved(node, document)
    if "const" in node or "enum" in node:
        values = node["enum"] if "enum" in node else [node["const"]]
        return frozenset((type(value).__name__, value) for value in values)
    if "type" not in node:
        variants = node.get("oneOf") or node.get("anyOf")
        if variants is None:
            return frozenset(["anything"])
        if all("properties" in row for row in variants):
            return shape_of_schema(merged(variants), document)
        return frozenset().union(*(shape_of_schema(row, document) for row in variants))
    found: set[Any] = set()
    for name in node["type"] if isinstance(node["type"], list) else [node["type"]]:
        if name == "array":
            found.add(("list", shape_of_schema(node["items"], document)))
        elif name == "object" and "properties" not in node:
            found.add(("map", shape_of_schema(node["additionalProperties"], document)))
        elif name == "object":
            rows = node["properties"].items()
            members = {(key, key in node["required"], shape_of_schema(row, document)) for key, row in rows}
            found.add(("object", frozenset(members)))
        else:
            found.update(_TYPES[name])
    return frozenset(found)


def merged(variants: list[Json]) -> Json:
    """One object that holds each of the variants of an object."""
    properties: Json = {}
    for row in variants:
        for name, value in row["properties"].items():
            before = properties.setdefault(name, value)
            if "enum" in before:
                properties[name] = {"enum": [*before["enum"], *value["enum"]]}
    required = [name for name in properties if all(name in row["required"] for row in variants)]
    return {"type": "object", "properties": properties, "required": required}


def shape_of_class(kind: Any) -> Shape:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return frozenset((type(value).__name__, value) for value in arguments)
    if origin is types.UnionType or str(origin) == "typing.Union":
        return frozenset().union(*(shape_of_class(row) for row in arguments if row is not types.NoneType))
    if origin is tuple:
        assert arguments[1:] == (...,)
        return frozenset([("list", shape_of_class(arguments[0]))])
    if origin is dict:
        assert arguments[0] is str
        return frozenset([("map", shape_of_class(arguments[1]))])
    if kind is Any or not issubclass(kind, Part):
        return frozenset(["anything" if kind is Any else kind.__name__])
    return shape_of_part(kind)


def shape_of_part(kind: type[Part]) -> Shape:
    config = kind.__struct_config__
    members = {
        (row.encode_name, row.required, shape_of_class(row.type)) for row in msgspec.structs.fields(kind)
    }
    if config.tag_field is not None:
        members.add((config.tag_field, True, frozenset([("str", config.tag)])))
    return frozenset([("object", frozenset(members))])


def differences(schema: Shape, content: Shape, where: str = "") -> list[str]:
    """Where the two are not the same, by JSON pointer."""
    if schema == content:
        return []
    pairs = (
        row for row in zip(containers(schema), containers(content), strict=False) if row[0][0] == row[1][0]
    )
    found: list[str] = []
    for (kind, one), (_, other) in pairs:
        if kind != "object":
            found += differences(one, other, f"{where}/*")
            continue
        left, right = ({name: rest for name, *rest in rows} for rows in (one, other))
        found += [f"{where}/{name} is in one alone" for name in sorted(left.keys() ^ right.keys())]
        for name in sorted(left.keys() & right.keys()):
            if left[name][0] != right[name][0]:
                found.append(f"{where}/{name} is required in one alone")
            found += differences(left[name][1], right[name][1], f"{where}/{name}")
    return found or [f"{where}: {sorted(map(str, schema))} and {sorted(map(str, content))}"]


def containers(shape: Shape) -> list[Any]:
    return [row for row in shape if isinstance(row, tuple) and row[0] in ("list", "map", "object")]


def test_the_classes_have_the_members_of_the_schemas() -> None:
    found = {}
    for name, kind in kinds.BY_SCHEMA.items():
        document = document_of(kind)
        found[name] = differences(shape_of_schema(document, document), shape_of_class(kind.content))
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_every_schema_has_a_kind() -> None:
    assert {document_of(kind)["$id"] for kind in kinds.BY_SCHEMA.values()} == DOCUMENTS.keys() - {
        "urn:ethosu-sdk:schema:common:1"
    }


def test_each_record_of_a_folder_has_a_name_and_a_role() -> None:
    names = [kind.file for kind in kinds.IN_FOLDERS]
    assert all(names)
    assert len({*names}) == len(names)
    assert all(kind.role for kind in kinds.IN_FOLDERS)
    assert not any(kind.file or kind.role for kind in kinds.PRINTED)


def _dropped(document: Json) -> None:
    del document["properties"]["verdict"]["properties"]["checks"]["items"]["properties"]["detail"]


def _added(document: Json) -> None:
    document["properties"]["npu"]["properties"]["volts"] = {"type": "number"}


def _optional(document: Json) -> None:
    document["properties"]["simulator"]["required"].remove("version")


def _required(document: Json) -> None:
    document["required"].append("npu")


def _retyped(document: Json) -> None:
    document["properties"]["operators"]["items"]["properties"]["instruction"]["type"] = "string"


def _renamed(document: Json) -> None:
    document["properties"]["board"]["enum"].append("corstone-310")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_dropped, "/verdict/checks/*/detail is in one alone"),
        (_added, "/npu/volts is in one alone"),
        (_optional, "/simulator/version is required in one alone"),
        (_required, "/npu is required in one alone"),
        (_retyped, "/operators/*/instruction: ['str'] and ['int']"),
        (_renamed, "/board: "),
    ],
)
def test_a_planted_difference_is_found(change: Callable[[Json], None], found: str) -> None:
    document = copy.deepcopy(document_of(kinds.RUN))
    change(document)
    rows = differences(shape_of_schema(document, document), shape_of_class(kinds.RUN.content))
    assert len(rows) == 1
    assert rows[0].startswith(found)
