"""From what torch records with a node to a line of the model."""

import importlib
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.compile.graphs import source_lines
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.records.common import SourceLine
from tests import installed
from tests.tables import each

ROOT = Path("/models/mine")
MODULE = {"a": ("", "mine.Net"), "b": ("block.conv", "torch.nn.modules.conv.Conv2d")}


def site(package: str, file: str) -> str:
    return str(installed.folder(package) / file)


def trace(*frames: tuple[str, int]) -> str:
    return "\n".join(f'  File "{file}", line {line}, in forward\n    code()\n' for file, line in frames)


TORCH = (site("torch", "nn/modules/conv.py"), 565)
PASS = (site("executorch", "backends/arm/_passes/rewrite_conv_pass.py"), 12)
FX = (site("torch", "fx/passes/infra/pass_base.py"), 46)
PACKAGE = (str(Path(sysconfig.get_path("purelib"), "somenets/resnet.py")), 7)
STANDARD = (str(Path(sysconfig.get_path("stdlib"), "functools.py")), 3)
ZOO = (site("ethosu_sdk", "compile/zoo/unknown_net.py"), 33)


def source_line(
    file: str | None,
    line: int | None,
    module: str | None,
    kind: str | None,
    function: str | None = None,
    package: str | None = None,
) -> SourceLine:
    return SourceLine(
        file=file, line=line, function=function, package=package, module=module, module_type=kind
    )


@each(
    ("frames", "place"),
    [
        (
            [("/models/mine/net.py", 14), ("/models/mine/parts/block.py", 7), TORCH, PASS, FX],
            ("parts/block.py", 7),
        ),
        ([("/models/mine/net.py", 14), PASS], ("net.py", 14)),
        ([("/elsewhere/net.py", 3), TORCH], ("/elsewhere/net.py", 3)),
        ([ZOO, TORCH, PASS], ("ethosu_sdk/compile/zoo/unknown_net.py", 33)),
        ([TORCH, PASS, FX], (None, None)),
        ([("/models/mine/net.py", 14), PACKAGE, TORCH], ("net.py", 14)),
        ([TORCH, PACKAGE, TORCH, PASS], ("somenets/resnet.py", 7)),
        ([("/models/mine/net.py", 14), STANDARD, ("<eval_with_key>.17", 5)], ("net.py", 14)),
        (
            [("/models/mine/.venv/lib/site-packages/torch_like/net.py", 14)],
            ("torch_like/net.py", 14),
        ),
        (
            [("/models/mine/net.py", 3), ("/models/mine/.venv/lib/site-packages/torch_like/net.py", 14)],
            ("net.py", 3),
        ),
    ],
)
def test_the_innermost_line_of_the_model(
    frames: list[tuple[str, int]], place: tuple[str | None, int | None]
) -> None:
    found = SourceFinder(ROOT).find({"stack_trace": trace(*frames), "nn_module_stack": MODULE})
    function = "forward" if place[0] is not None else None
    package = {"ethosu_sdk/compile/zoo/unknown_net.py": "ethosu_sdk", "somenets/resnet.py": "somenets"}
    package |= {"torch_like/net.py": "torch_like"}
    assert found == source_line(*place, "block.conv", "Conv2d", function, package.get(place[0] or ""))


@each(
    ("meta", "expected"),
    [
        ({}, None),
        ({"stack_trace": None}, None),
        ({"stack_trace": trace(PASS, FX)}, None),
        (
            {"stack_trace": trace(PASS), "nn_module_stack": MODULE},
            source_line(None, None, "block.conv", "Conv2d"),
        ),
        ({"nn_module_stack": {"a": ("", "torch.export._trace.Wrapper")}}, None),
        ({"nn_module_stack": {"a": ("", "mine.Net")}}, source_line(None, None, "", "Net")),
        ({"nn_module_stack": {"a": ("_export_root", "mine.Net")}}, source_line(None, None, "", "Net")),
        ({"nn_module_stack": {"a": ("_export_root.l", "mine.Net")}}, source_line(None, None, "l", "Net")),
        ({"stack_trace": trace(("/models/mine/net.py", 2))}, source_line("net.py", 2, None, None, "forward")),
    ],
)
def test_what_torch_did_not_record_is_not_made_up(meta: dict[str, Any], expected: SourceLine | None) -> None:
    assert SourceFinder(ROOT).find(meta) == expected


def test_modules_of_torch_and_copies_have_the_line_that_constructed_them() -> None:
    finder = SourceFinder(ROOT, {"block.conv": ("parts/block.py", 3, "Block.__init__")})
    own = {"stack_trace": trace(("/models/mine/net.py", 14), TORCH), "nn_module_stack": MODULE}
    assert finder.find(own) == source_line("net.py", 14, "block.conv", "Conv2d", "forward")
    for meta in ({"stack_trace": trace(TORCH, PASS)}, {"stack_trace": trace(PASS)}, {}):
        found = finder.find({**meta, "nn_module_stack": MODULE})
        assert found == source_line("parts/block.py", 3, "block.conv", "Conv2d", "Block.__init__")
    finder = SourceFinder(ROOT, {"": ("net.py", 1, None), "encoder": ("net.py", 9, "Net.__init__")})
    for module, place in (("encoder.layers.1.linear1", ("net.py", 9)), ("head", ("net.py", 1))):
        found = finder.find({"nn_module_stack": {"a": (module, "torch.nn.modules.linear.Linear")}})
        assert found is not None
        assert (found.file, found.line) == place
    assert finder.find({"stack_trace": trace(TORCH, PASS)}) is None  # of an unknown module
    found = SourceFinder(None).find({"stack_trace": trace(("/models/mine/net.py", 2))})
    assert found == source_line("/models/mine/net.py", 2, None, None, "forward")


def test_the_function_has_its_class_where_the_file_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines_of_net.py"
    path.write_text(
        "class Net:\n    class Block:\n        def forward(self, x):\n            def inner():\n"
        "                return x\n            return [inner() for _ in x]\ny = 3\n"
    )
    finder = SourceFinder(tmp_path)

    def function(line: int, name: str) -> str | None:
        found = finder.find({"stack_trace": f'File "{path}", line {line}, in {name}'})
        assert found is not None
        return found.function

    assert function(5, "inner") == "inner"  # of a saved program: its file is not read
    source_lines._functions.cache_clear()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(path.stem)
    assert function(5, "inner") == "Net.Block.forward.inner"
    assert function(6, "<listcomp>") == "Net.Block.forward"
    assert function(7, "<module>") is None


def test_the_line_that_raised(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("import json\ndef inner():\n    json.loads('{')\ndef forward():\n    inner()\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - which one is json's business
        namespace["forward"]()
    assert SourceFinder(tmp_path).place_of(caught.value) == "net.py, line 3: `json.loads('{')`"
    assert SourceFinder(None).place_of(caught.value) is None
    assert SourceFinder(tmp_path / "other").place_of(caught.value) is None


@pytest.mark.parametrize(
    ("meta", "place"),
    [
        (
            {"stack_trace": trace(("/models/mine/net.py", 2)), "nn_module_stack": MODULE},
            "net.py, line 2, in forward, module 'block.conv'",
        ),
        ({"nn_module_stack": MODULE}, "module 'block.conv' (Conv2d)"),
        ({"nn_module_stack": {"a": ("", "mine.Net")}}, "Net"),
        ({}, None),
    ],
)
def test_words_for_a_place(meta: dict[str, Any], place: str | None) -> None:
    assert SourceFinder(ROOT).place(meta) == place
