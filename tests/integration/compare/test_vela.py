"""`compare --vela`: the same TOSA graphs by several versions of Vela.

Other versions come from the network, which tests do without: the installed Vela stands for one, copies of it with a
planted change for others.
"""

from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.integration.compare.conftest import BROKEN, OWN, SLOWER, WRONG
from tests.integration.compare.runs import MODEL, compare
from tests.records import read

pytestmark = [pytest.mark.torch]


def test_versions_are_compared_and_what_is_worse_is_found(made: Path, versions: Path, tmp_path: Path) -> None:
    program = made / "shared" / f"{MODEL}.pte"
    words = ("--vela", f"{OWN},{SLOWER},{WRONG},{BROKEN}", f"zoo:{MODEL}")
    found = compare(*words, cwd=tmp_path)
    assert found.done.code == 7, found.done.err
    assert f"vela-{BROKEN} could not be run: " in found.done.err
    assert "worse than before" not in found.done.err
    assert [row["name"] for row in found.record["subjects"]] == [f"vela-{v}" for v in (OWN, SLOWER)]
    own = tmp_path / "out" / f"vela-{OWN}" / program.name
    assert own.read_bytes() == program.read_bytes()  # the same as the one lowering packed
    (slower,) = found.record["comparisons"]
    lines = found.done.out.splitlines()
    assert lines[0].startswith("SLOWER ")
    assert "outputs   equal, bit for bit" in lines
    told = [line.split()[1] for line in lines if line.startswith("FAILED ")]
    assert told == [f"vela-{WRONG}", f"vela-{BROKEN}"]
    worse = {row["name"]: row for row in slower["metrics"] if row["status"] == "regression"}
    assert "npu.cycles" in worse
    assert not [name for name in worse if name.startswith("outputs.")]
    operator = slower["operators"][worse["npu.cycles"]["operator"]]
    assert operator["source"]["module"]
    allowed = {row["name"]: row for row in slower["dimensions"] if row["status"] == "allowed"}
    assert set(allowed) == {"model", "versions"}
    assert f"ethos-u-vela {SLOWER}" in allowed["versions"]["after"]
    compiled = read(tmp_path / "out" / f"vela-{SLOWER}" / f"{MODEL}.compile.json")
    assert {"name": "ethos-u-vela", "version": SLOWER} in compiled["provenance"]["tools"]
    wrong, broken = found.record["failed"]
    assert (wrong["name"], broken["name"]) == (f"vela-{WRONG}", f"vela-{BROKEN}")
    assert "the program's outputs differ from those of the model" in wrong["reason"]
    assert "this network is too good for me" in broken["reason"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["--vela", f"{OWN},8.8.8", "zoo:add"],
            4,
            "Vela 8.8.8 is not in the cache and could not be installed",
        ),
        (["--vela", OWN, "zoo:add"], 2, "two or more versions"),
        (["--vela", f"{OWN},{OWN}", "zoo:add"], 2, "each once"),
        (["--vela", f"{OWN},../x", "zoo:add"], 2, "'../x' is not a version of Vela"),
        (["--vela", f"{OWN},{SLOWER}", "zoo:add", "zoo:add"], 2, "--vela takes one model, not 2"),
        (["a", "b", "--target", "ethos-u85-256"], 2, "need --vela"),
        (["--vela", f"{OWN},{SLOWER}", "other.pte"], 2, "other.pte is compiled already"),
        (["--vela", f"{OWN},{SLOWER}", "zoo:add", "--target", "cortex-m55"], 2, "cortex-m55 has no NPU"),
    ],
)
def test_what_cannot_be_done_is_named(
    words: list[str], code: int, said: str, versions: Path, tmp_path: Path
) -> None:
    done = sdk("compare", *words, cwd=tmp_path, env={"PIP_NO_INDEX": "1"})
    assert (done.code, said in done.err) == (code, True), done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []
    if code == 4:
        assert "pip installs other versions of Vela from the package index" in done.err
        assert not [path for path in versions.iterdir() if path.name.startswith("8")]
