"""Model Explorer with Arm's adapter for TOSA: ``explorer_server.py GRAPH.tosa DATA.json PORT``, until it is ended.

Two packages are kept out that have adapters for other formats: they take seconds and half a gigabyte.
"""

import sys

for package in ("torch", "ai_edge_model_explorer_adapter"):
    sys.modules[package] = None  # type: ignore[assignment]

import model_explorer  # noqa: E402

config = model_explorer.config()
config.add_model_from_path(sys.argv[1])
config.add_node_data_from_path(sys.argv[2])
model_explorer.visualize_from_config(
    config,
    host="127.0.0.1",
    port=int(sys.argv[3]),
    extensions=["tosa_adapter_model_explorer"],
    no_open_in_browser=True,
)
