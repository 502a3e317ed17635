"""Turns the outcomes of all cells into docs/reference/zoo-matrix.md.

The page names versions but no date and no machine: the same outcomes give the same page.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from campaigns.zoo_matrix.cells import (
    DELEGATES,
    MEMORY,
    MODELS,
    TARGETS,
    Cell,
    cells,
    memory_modes,
    quantisations,
)
from campaigns.zoo_matrix.checks import DIFFERS, EXACT, RANDOM_INFERENCES, REFUSED, STEPS, Outcome
from ethosu_sdk.base.targets import parse_target
from tests.conformance.report import table, versions
from tests.conformance.targets import executorch_target

Outcomes = Mapping[Cell, Outcome]


class Notes:
    """Footnotes: the same text gets the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, text: str) -> str:
        """The mark of a note that says `text`."""
        number = self._numbers.setdefault(text, len(self._numbers) + 1)
        return f"[{number}]"

    def lines(self) -> str:
        """All notes, as a list of Markdown."""
        return "\n".join(f"- [{number}] {text}" for text, number in self._numbers.items()) or "None."


def cell_text(found: Outcome, notes: Notes) -> str:
    """What a cell shows."""
    if found.verdict == REFUSED:
        return f"refused {notes.mark(_sentence(found.detail))}"
    if found.verdict == DIFFERS:
        share = f"{found.differing} of {found.elements}" if found.elements else notes.mark(found.detail)
        return f"**differs** {share}"
    if found.verdict != EXACT:
        return f"**failed** {notes.mark(_sentence(found.detail))}"
    count = {0: "no delegate", 1: "1 delegate"}.get(found.delegates, f"{found.delegates} delegates")
    texts = [f"On the CPU: `{name}`. {_sentence(reason)}" for name, reason in found.cpu]
    if found.refusal:  # it says what `build` notes, and more
        return " ".join(
            [f"exact when spilled, {count}", *map(notes.mark, [_sentence(found.refusal), *texts])]
        )
    what = f"exact, {count}" if found.elements else count
    return " ".join([what, *map(notes.mark, [*texts, *map(_sentence, found.notes)])])


def _sentence(text: str) -> str:
    whole = text.strip().replace("|", "\\|")
    return f"{whole[:1].upper()}{whole[1:]}" + ("" if whole.endswith(".") else ".")


def delegate_table(outcomes: Outcomes, notes: Notes) -> str:
    """A row for each model and those of its quantisations with the same outcomes, a column for each target."""
    rows = []
    for model in MODELS:
        found: dict[tuple[str, ...], list[str]] = {}
        for quantize in quantisations(model):
            given = ((name, executorch_target(name).memory_mode) for name in TARGETS)
            keys = (Cell(DELEGATES, model, name, quantize, mode) for name, mode in given)
            found.setdefault(tuple(cell_text(outcomes[key], notes) for key in keys), []).append(quantize)
        rows += [[f"`{model}`", ", ".join(names), *texts] for texts, names in found.items()]
    return table(("model", "quantised", *TARGETS), rows)


def memory_section(target: str, outcomes: Outcomes, notes: Notes) -> str:
    """A row for each model and those memory modes of the target that have the same outcome.

    What `build` notes for every program with a delegate is said once.
    """
    modes = memory_modes(target)
    found = {cell: outcomes[cell] for cell in cells(MEMORY) if cell.target == target}
    ran = [set(row.notes) for row in found.values() if row.verdict == EXACT and row.delegates]
    common = set.intersection(*ran) if ran else set()
    rows = []
    for model in MODELS:
        texts: dict[str, list[str]] = {}
        for mode, row in zip(modes, (found[cell] for cell in found if cell.model == model), strict=True):
            rest = replace(row, notes=tuple(note for note in row.notes if note not in common))
            texts.setdefault(cell_text(rest, notes), []).append(mode)
        rows += [
            [f"`{model}`", "all" if len(names) == len(modes) else ", ".join(names), text]
            for text, names in texts.items()
        ]
    title = f"### {target}, {parse_target(target).system_config}"
    return "\n\n".join(
        [title, *map(_sentence, sorted(common)), table(("model", "memory modes", "outcome"), rows)]
    )


def tally(found: Iterable[Outcome]) -> str:
    """How many cells are exact, and what the others are."""
    verdicts = [row.verdict for row in found]
    exact, refused = verdicts.count(EXACT), verdicts.count(REFUSED)
    rest = len(verdicts) - exact - refused
    return f"{exact} of {len(verdicts)} exact, {refused} refused" + (f", **{rest} wrong**" if rest else "")


def page(outcomes: Outcomes) -> str:
    """The whole page. KeyError when a cell has no outcome."""
    delegate_notes, memory_notes = Notes(), Notes()
    return _PAGE.format(
        delegates=delegate_table(outcomes, delegate_notes),
        delegate_tally=tally(outcomes[cell] for cell in cells(DELEGATES)),
        delegate_notes=delegate_notes.lines(),
        memory="\n\n".join(memory_section(target, outcomes, memory_notes) for target in TARGETS),
        memory_tally=tally(outcomes[cell] for cell in cells(MEMORY)),
        memory_notes=memory_notes.lines(),
        inferences=RANDOM_INFERENCES,
        steps=STEPS,
        versions=versions(),
    )


def sound(found: Iterable[Outcome]) -> bool:
    """Whether every cell is exact or refused with a reason."""
    return all(row.verdict == EXACT or (row.verdict == REFUSED and bool(row.detail)) for row in found)


_PAGE = """# The zoo on every family

<!-- Generated by scripts/zoo-matrix: do not edit. -->

This page has the results of the models in the [zoo](zoo.md), compiled by `ethosu-sdk compile` for one
configuration of each family. The decoders (`llama_1m` and larger) are missing: their
[generated tokens](../guide/generate.md) are compared with PyTorch.

## Delegates on the NPU model

Each delegate runs on the NPU model. Arm's TOSA reference model runs the TOSA graph that Vela was given. Both get
three kinds of inputs: those that the program passes for the model's example inputs, random ones over the whole
range of their types, and half of each. *exact* means the same bytes in every output. System configuration and
memory mode are ExecuTorch's defaults; on Ethos-U85 that is Sram_Only, not the SDK's default. {delegate_tally}.

{delegates}

{delegate_notes}

Conversions between float and quantised values at the border of delegates run on the CPU and are not listed.
Refusals show the compiler's own message.

## Memory modes

The firmware runs on QEMU with the NPU model, in each memory mode of the target's default system configuration. The
models have the zoo's quantisation. Example inputs and {inferences} sets of random ones run in one boot, and on the
host simulator; a model with a state makes {steps} steps of a sequence instead. *exact* means that every output of
both equals, byte for byte, the output of ExecuTorch's runtime with the TOSA reference model in place of the
delegates. {memory_tally}.

*when spilled* means that `build` refuses the program with the message in the footnote, because it does not fit the
memory of the mode; it ran with `--allow-spill`.

{memory}

{memory_notes}

## Versions

{versions}

`scripts/zoo-matrix` fills the tables again. The tests include a sample of the cells.
"""
