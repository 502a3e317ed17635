"""A sample of the cells of docs/reference/model-corpus.md, what must be noticed in a cell, and the page itself."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from campaigns.command import Done
from campaigns.corpus import __main__ as program, page, recipe, reviews
from campaigns.corpus.__main__ import SAMPLE
from campaigns.corpus.catalogue import ARCHITECTURES
from campaigns.corpus.cells import CAUGHT, DIFFERS, FAILED, RAN, REFUSED, TARGETS, Cell, Outcome
from campaigns.corpus.judgement import compared, ended
from campaigns.corpus.packages import REQUIREMENTS
from campaigns.grid import PAGES, rows_of
from tests.places import ROOT

PAGE = PAGES / "model-corpus.md"
LAYER_NORM = (("aten::native_layer_norm.out", 2),)


@pytest.mark.torch
@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(list(SAMPLE)[:1], id="one"),
        pytest.param(list(SAMPLE)[1:], id="the others", marks=pytest.mark.thorough),
    ],
)
def test_a_sample_of_the_cells(cells: list[Cell], tmp_path: Path) -> None:
    """In one process: the packages are imported once."""
    program.run_workers(tmp_path, cells, 900)
    found = program.stored(tmp_path)
    assert {cell: (row.verdict, row.message) for cell, row in found.items()} == dict.fromkeys(
        cells, (RAN, "")
    )
    for cell, row in found.items():
        assert row.delegates, cell
        assert row.elements > 1, cell
        assert row.quantisation_db is not None, cell
        assert row.quantisation_db > 10, cell


def test_the_sample_needs_only_what_the_tests_install() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    pins = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    for cell, package in SAMPLE.items():
        assert ARCHITECTURES[cell.name].package == package
        assert [pin for pin in pins if pin in extras["dev"] and pin.startswith(f"{package}==")]


def test_every_package_of_the_corpus_is_pinned() -> None:
    pinned = {line.partition("==")[0] for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()}
    assert {entry.package for entry in ARCHITECTURES.values()} <= pinned


def test_one_wrong_bit_is_a_difference() -> None:
    expected = np.linspace(-1, 1, 8, dtype=np.float32)
    found = expected.copy()
    found[3:4].view(np.uint32)[0] ^= 1
    assert compared(Outcome(RAN), [expected], [expected]) == Outcome(RAN, elements=8)
    outcome = compared(Outcome(RAN), [found], [expected])
    assert (outcome.verdict, outcome.differing, outcome.elements) == (DIFFERS, 1, 8)
    zero = np.zeros(2, np.float32)
    assert compared(Outcome(RAN), [-zero], [zero]).verdict == DIFFERS
    assert compared(Outcome(RAN), [zero[:1]], [zero]).verdict == DIFFERS


def test_bounds_are_those_of_the_kernels_on_the_way() -> None:
    expected = np.ones(4, np.float32)
    near, far = expected + np.float32(4e-6), expected + np.float32(1e-4)
    facts = Outcome(RAN, cpu=LAYER_NORM)
    assert compared(Outcome(RAN), [near], [expected]).verdict == DIFFERS
    assert compared(facts, [far], [expected]).verdict == DIFFERS
    outcome = compared(facts, [near], [expected])
    assert (outcome.verdict, outcome.allowance) == (RAN, ("aten::native_layer_norm.out",))
    assert outcome.distance == pytest.approx(4e-6, rel=0.1)


@pytest.mark.parametrize(
    ("done", "verdict", "message"),
    [
        pytest.param(Done(3, "", "error: no such\nhint: do\n"), REFUSED, "no such", id="an error of the SDK"),
        pytest.param(Done(7, "", "error: too far off\n"), CAUGHT, "too far off", id="a wrong result"),
        pytest.param(
            Done(1, "", "error: internal error: KeyError: 3\n"), FAILED, "error: internal error: KeyError: 3"
        ),
        pytest.param(Done(70, "", "Traceback (most recent call last)\nKeyError: 3\n"), FAILED, "KeyError: 3"),
        pytest.param(
            Done(5, "", "Traceback (most recent call last)\nerror: x"), FAILED, "error: x", id="a traceback"
        ),
        pytest.param(Done(-11, "", ""), FAILED, "", id="a signal"),
        pytest.param(Done(None, "", ""), FAILED, "stopped: the time limit of a cell was over"),
    ],
)
def test_what_ends_with_an_error(done: Done, verdict: str, message: str) -> None:
    outcome = ended(Outcome(RAN), "compile", done)
    assert (outcome.verdict, outcome.step, outcome.message) == (verdict, "compile", message)


def test_settled_networks_look_trained() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).requires_grad_(
        requires_grad=False
    )
    nn.init.zeros_(network[1].weight)  # as a residual branch starts
    recipe._wake(network)
    assert float(network[1].weight.min()) > 0.1
    assert float(network[1].bias.std()) > 0.01
    make = recipe.image(3, 32)
    recipe.settle(network, make)
    assert not network.training
    values = nn.functional.batch_norm(
        network[0](make(5, 8)[0]), network[1].running_mean, network[1].running_var
    )
    assert float(values.mean().abs()) < 0.3
    assert 0.5 < float(values.std()) < 1.5
    assert torch.equal(make(5, 2)[0], make(5, 2)[0])
    assert not torch.equal(make(5, 2)[0], make(6, 2)[0])


def test_the_page_shows_every_cell_and_every_refusal() -> None:
    name = next(iter(ARCHITECTURES))
    ran = Outcome(RAN, elements=4, quantisation_db=30.4, execution_db=51.0, cpu=LAYER_NORM)
    refused = Outcome(REFUSED, "compile", 3, "/a/b.c/net.py:3: complex | tensors\nmore")
    outcomes = dict(zip((Cell(name, target) for target in TARGETS), (ran, refused), strict=False))
    judged = reviews.Review("complex", truthful=True, why="it has an FFT")
    text = page.page(outcomes, (judged,))
    (row,) = [row for row in rows_of(text, _HEADING) if row[0] == f"`{name}`"]
    shown = "; ".join(
        f"{text} ({name})" for text, name in zip(("30 → 51", "refused (3)", "not run"), TARGETS, strict=True)
    )
    assert row[3:] == ["`native_layer_norm` 2", shown]
    assert "| net.py:3: complex \\| tensors more | true: it has an FFT" in text
    assert "not reviewed" in page.page(outcomes, ())
    assert "1 of 2 cells ran, 1 refused" in text


def test_the_page_in_the_documentation() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = rows_of(text, _HEADING)
    assert [row[0].strip("`") for row in rows] == list(ARCHITECTURES)
    assert len(rows) >= 60
    assert not [
        word
        for word in ("not run (", "| not run", "not reviewed", "untrue", "**failed**", "**differs**")
        if word in text
    ]
    refused = [row for row in rows if "refused" in row[4] or "caught" in row[4]]
    assert len(refused) <= 0.05 * len(rows)


_HEADING = ("architecture", "package", "task", "on the CPU", "decibels")
