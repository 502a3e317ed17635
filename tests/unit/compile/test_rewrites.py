"""The table of rewrites has every rewrite, and each row's test is there. Its import is light."""

import importlib
import inspect
import re

import pytest

from ethosu_sdk.compile import rewrite
from ethosu_sdk.compile.rewrite import frame
from ethosu_sdk.compile.rewrite.table import REWRITES, Moment, Rewrite
from tests.places import ROOT

FOLDER = ROOT / "sdk" / "ethosu_sdk" / "compile" / "rewrite"
MODULES = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__", "frame", "graph_passes", "table"})
# Public functions that rewrite no graph: checks, the frame of replacements, and parts of the Cortex-M backend.
OTHERS = {
    *(
        "before_quantisation.inline",
        "before_quantisation.make_faster",
        "before_quantisation.replace_operators",
    ),
    *("convolutions_and_pooling.groups_of_transposed", "convolutions_and_pooling.pair"),
    *("convolutions_and_pooling.is_grouped_volume", "convolutions_and_pooling.part", "separable.product"),
    *("cortex_m.cortex_m_quantizer", "cortex_m.edge_configuration", "cortex_m.is_marked"),
    *("cortex_m.mark_operators", "cortex_m.pass_classes", "cortex_m.run_passes"),
    *("borders.crosses_border",),
    *("integers.refuse_wide_integers", "partitioning.lower_leaving_out"),
}


@pytest.mark.parametrize("row", REWRITES, ids=lambda row: f"{row.moment.name}-{row.name}")
def test_each_row_has_a_function_and_a_test(row: Rewrite) -> None:
    found = frame.function_of(row)
    assert callable(found) or (row.moment in (Moment.FLOAT, Moment.FASTER) and isinstance(found, dict))
    assert bool(row.gain) == (row.moment is Moment.FASTER)
    assert bool(row.before) == (row.moment in (Moment.EDGE, Moment.TOSA))
    file, _, name = row.test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf'(def |class |")?\b{re.escape(name)}\b', text), row.test
    assert row.reason.endswith(".")


@pytest.mark.parametrize("module", MODULES)
def test_each_rewrite_of_a_module_is_in_the_table(module: str) -> None:
    content = importlib.import_module(f"{rewrite.__name__}.{module}")
    rewrites = {
        f"{module}.{name}"
        for name, value in vars(content).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == content.__name__
    }
    rewrites |= {f"{module}.{name}" for name in vars(content) if name.endswith("_CHOICES")}
    known = {row.name for row in REWRITES}
    assert rewrites <= known | OTHERS
    assert {name for name in known | OTHERS if name.startswith(f"{module}.")} <= rewrites


def test_moments_come_in_their_order() -> None:
    order = list(Moment)
    assert [row.moment for row in REWRITES] == sorted((row.moment for row in REWRITES), key=order.index)


def test_the_documentation_refers_to_the_table() -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    assert "compile/rewrite/table.py" in page


def test_the_table_is_light_to_import() -> None:
    imports = re.findall(
        r"^(?:from|import) (\S+)", (FOLDER / "table.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(imports) == {"__future__", "dataclasses", "enum"}


@pytest.mark.parametrize("row", REWRITES, ids=lambda row: f"{row.moment.name}-{row.name}")
def test_targets_that_share_a_lowering_share_its_rewrites(row: Rewrite) -> None:
    """One lowering for Ethos-U55 and U65, another for its smallest, and one for Ethos-U85 (shared_lowering.py)."""
    for alike in (("ethos-u55-128", "ethos-u55-256", "ethos-u65-256"), ("ethos-u55-32", "ethos-u55-64")):
        assert len({row.is_for(target) for target in alike}) == 1
