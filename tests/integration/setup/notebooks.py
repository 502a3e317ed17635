"""Executes the notebooks of docs/: ``python -m tests.integration.setup.notebooks`` stores what they show."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "guide" / "notebooks").glob("*.ipynb"))
_TIMEOUT_S = 600


def executed(path: Path, folder: Path) -> Any:
    """The notebook at `path`, executed in the empty `folder`; nbclient's error for a cell that raises."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    # The kernel's files and its Python, whichever environment's this is.
    os.environ["JUPYTER_PATH"] = str(Path(sys.prefix) / "share" / "jupyter")
    client = NotebookClient(notebook, timeout=_TIMEOUT_S, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)  # when it was executed
        if "outputs" in cell:  # warnings and progress are for whoever executes it
            cell["outputs"] = [row for row in cell["outputs"] if not _is_passing(row)]
    return notebook


def _is_passing(output: Any) -> bool:
    """Whether an output is a warning, or a line of progress, which is empty in the end."""
    return output.get("name") == "stderr" or output.get("data") == {"text/plain": ""}


def shown(notebook: Any) -> list[str]:
    """What the cells of code show, as text."""
    return [
        "".join(
            row.get("text", "") if row["output_type"] == "stream" else row["data"].get("text/plain", "")
            for row in cell["outputs"]
        )
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    ]


def main() -> None:
    """Execute notebooks and write what they show."""
    import nbformat

    names = [path.stem for path in NOTEBOOKS]
    parser = argparse.ArgumentParser(prog="scripts/notebooks", description=main.__doc__)
    parser.add_argument(
        "--folder", type=Path, default=NOTEBOOKS[0].parent, metavar="DIR", help="where they go"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    given = parser.parse_args()
    if unknown := sorted({*given.names} - {*names}):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    for path in (path for path in NOTEBOOKS if path.stem in (given.names or names)):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), given.folder / path.name)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
