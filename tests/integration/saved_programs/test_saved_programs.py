"""A .pt2 that could run code when it is loaded is refused before torch sees it, and passes with --trust."""

from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import saved_program, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from tests.integration.cli import assert_clear, sdk
from tests.integration.saved_programs import programs as saved_programs
from tests.integration.saved_programs.programs import MARK, REFUSED, RUNNING, Tamper

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of one layer, saved as torch does."""
    import torch

    path = tmp_path_factory.mktemp("saved") / "net.pt2"
    layers = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(layers, (torch.ones(1, 4),)), path)
    return path


def refused(tamper: Tamper, program: Path, folder: Path, *command: str) -> str:
    saved_programs.tampered(program, folder / "net.pt2", tamper)
    outcome = sdk(*command, "net.pt2", cwd=folder)
    assert outcome.code == 3
    assert not (folder / MARK).exists()
    assert not (folder / "build").exists()
    first, second = outcome.err.splitlines()
    assert first.startswith("error: net.pt2 is not loaded, because it could run code: ")
    assert "--trust" in second
    return first


@pytest.mark.parametrize(
    ("tamper", "words"), RUNNING.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_code_that_runs_when_torch_loads_it(
    tamper: Tamper, words: str, program: Path, tmp_path: Path
) -> None:
    assert words in refused(tamper, program, tmp_path, "compile")


def test_run_refuses_it_too(program: Path, tmp_path: Path) -> None:
    refused(saved_programs.expression, program, tmp_path, "run")


@pytest.mark.parametrize(
    ("tamper", "words"), REFUSED.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_what_else_torch_would_interpret(tamper: Tamper, words: str, program: Path, tmp_path: Path) -> None:
    saved_programs.tampered(program, tmp_path / "net.pt2", tamper)
    with pytest.raises(InputError) as caught:
        saved_program.read_saved_program(tmp_path / "net.pt2", trust=False)
    assert words in caught.value.message


def test_trust_loads_it_as_it_is(program: Path, tmp_path: Path) -> None:
    saved_programs.tampered(program, tmp_path / "net.pt2", saved_programs.sample_inputs)
    assert_clear(sdk("compile", "net.pt2", "--trust", cwd=tmp_path), 3, "number 0 is a int, not a tensor")
    assert (tmp_path / MARK).exists()


def test_the_process_that_loads_it_checks_what_it_read(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may change between the command's look at it and the compiler's."""
    monkeypatch.chdir(tmp_path)
    saved_programs.tampered(program, tmp_path / "net.pt2", saved_programs.expression)
    request = CompileRequest("net.pt2", parse_target("ethos-u55-128"), tmp_path)
    with pytest.raises(InputError, match="could run code"):
        worker.run_stages(request, lambda stage: None)
    assert not (tmp_path / MARK).exists()


def test_torch_unpickles_tensors_alone_even_if_the_check_lets_more_through(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saved_program, "check_members", lambda found: None)
    saved_programs.tampered(program, tmp_path / "net.pt2", saved_programs.sample_inputs)
    request = CompileRequest("net.pt2", parse_target("ethos-u55-128"), tmp_path)
    with pytest.raises(InputError, match="cannot load the program"):
        worker.run_stages(request, lambda stage: None)
    assert not (tmp_path / MARK).exists()


def test_what_torch_saves_of_a_network_passes(tmp_path: Path) -> None:
    """Dynamic shapes with guards, a branch, containers, data-dependent sizes, recurrence, extra files."""
    import torch
    from torch.export import Dim, export

    class Shapes(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
            half = torch.cat([a, b]).view(-1, 2)[: a.shape[0] // 2 * 3]
            return [half, a.reshape(a.shape[0] // 2, -1)]

    class Parts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleDict({"1x1-über": torch.nn.Linear(4, 2)})

        def forward(
            self, x: torch.Tensor, more: dict[str, list[torch.Tensor]], *, k: torch.Tensor
        ) -> torch.Tensor:
            y = (
                self.parts["1x1-über"](x + more["q"][0] & k)
                if k.dtype == torch.bool
                else self.parts["1x1-über"](x)
            )
            return torch.cond(y.sum() > 0, lambda z: z * 2, lambda z: z - 1, (y,)) + y[y > 0].sum()

    x = torch.ones(1, 4)
    automatic = {0: Dim.AUTO, 1: Dim.AUTO}
    programs = (
        export(Shapes(), (torch.ones(8, 4), torch.ones(6, 4)), dynamic_shapes=(automatic, {0: Dim.AUTO})),
        export(Parts(), (x, {"q": [x]}), {"k": x}),
        export(torch.nn.GRU(3, 4), (torch.ones(2, 1, 3),)),
    )
    for program in programs:
        torch.export.save(program, tmp_path / "net.pt2", extra_files={"note.txt": "__import__('os')"})
        saved_program.read_saved_program(tmp_path / "net.pt2", trust=False)
