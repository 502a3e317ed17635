"""`convert` to tables and node data: readers of others find the record's figures in them."""

import importlib
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet
import pytest

from tests.integration.convert.reading import convert, refused
from tests.records import example

Record = dict[str, Any]


def _figures(record: Record) -> list[tuple[Any, ...]]:
    def cycles(row: Record, source: str) -> Any:
        return next((part["value"] for part in row.get("cycles", ()) if part["source"] == source), None)

    return [
        (
            row["name"],
            row.get("macs"),
            cycles(row, "modelled"),
            cycles(row, "estimated"),
            row.get("utilisation"),
        )
        for row in record["operations"]
    ]


_COLUMNS = ("name", "macs", "cycles_modelled", "cycles_estimated", "utilisation")


def test_parquet_has_the_rows_with_their_types(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    table = pyarrow.parquet.read_table(io.BytesIO(convert(record, "parquet", tmp_path)))
    rows = [tuple(row[name] for name in _COLUMNS) for row in table.to_pylist()]
    assert rows == _figures(record)
    types = {str(table.schema.field(name).type) for name in ("macs", "cycles_modelled", "read_bytes", "line")}
    assert types == {"int64"}
    metadata = table.schema.metadata
    assert metadata[b"ethosu-sdk.model_sha256"].decode() == record["model"]["sha256"]


@pytest.fixture
def node_data(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Model Explorer's classes of node data, without the server that its package starts with."""
    spec = importlib.util.find_spec("model_explorer")
    assert spec is not None
    package = ModuleType("model_explorer")
    package.__path__ = list(spec.submodule_search_locations or ())
    monkeypatch.setitem(sys.modules, "model_explorer", package)
    return importlib.import_module("model_explorer.node_data_builder")


def test_model_explorer_knows_every_member_and_sums_are_the_profiles(node_data: Any, tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    found = json.loads(convert(record, "model-explorer", tmp_path))
    graphs = {}
    for graph, data in found.items():
        results = {name: node_data.NodeDataResult(**row) for name, row in data["results"].items()}
        gradient = [node_data.GradientItem(**row) for row in data["gradient"]]
        rest = {key: value for key, value in data.items() if key not in ("results", "gradient")}
        graphs[graph] = node_data.GraphNodeData(results=results, gradient=gradient, **rest)
    again = json.loads(node_data.ModelNodeData(graphs).to_json_string())
    assert {name: row["results"] for name, row in again.items()} == {
        name: row["results"] for name, row in found.items()
    }
    named = [row for row in record["operations"] if "tosa" in row]
    results = found["main"]["results"]
    cycles = [part["value"] for row in named for part in row["cycles"] if part["source"] == "modelled"]
    assert sum(row["value"] for row in results.values()) == sum(cycles)
    assert set(results) == {f"main/op{row['tosa']['index']}" for row in named}


def test_a_profile_without_tosa_operators_has_no_nodes(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    for row in record["operations"]:
        row.pop("tosa", None)
    (tmp_path / "profile.json").write_text(json.dumps(record), encoding="utf-8")
    assert "has no TOSA operators" in refused(tmp_path, tmp_path / "profile.json", "--to", "model-explorer")
