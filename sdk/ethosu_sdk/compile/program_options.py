"""Options as data: how the command line offers a field of an option dataclass, and the options of a compilation,
its target and its accuracy.

The option dataclasses are the one place where an option is written: its type, default, text and choices. Annotations
are not postponed, so that a field's type is there at run time. Imported for every `--help`: it must stay light.
"""

from dataclasses import KW_ONLY, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from ethosu_sdk.base.targets import DEFAULT_TARGET

if TYPE_CHECKING:
    from ethosu_sdk.compile.compile_facts import LayerRequest
    from ethosu_sdk.compile.evaluation import EvaluateOptions

QUANTIZE_CHOICES = ("int8", "int16", "none")
QUANTIZE_PER_CHOICES = ("channel", "tensor")
IO_CHOICES = ("float", "int8")
CORTEX_M, PORTABLE = "cortex-m", "portable"
FALLBACK_CHOICES = (CORTEX_M, PORTABLE)

T = TypeVar("T")
Completion = Literal["targets", "system_configs", "memory_modes", "systems", "models"]
_KEY = "option"


@dataclass(frozen=True)
class Option:
    """What `--help` says about an option, which values it takes and what the shell completes.

    `name` replaces the field's own; a flag whose name starts with ``--no-`` sets the field to False. `shown_default`
    describes a default that the value alone does not. The shell offers `choices`, or what `completion` names
    (:mod:`ethosu_sdk.cli.completion`); the command itself checks the value. A field without a default is an argument.
    `shapes` is False for an option of `compile` that does not change the program, or whose files do by their content.
    """

    help: str
    name: str = ""
    short: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    shown_default: str = ""
    completion: Completion | None = None
    minimum: float | None = None
    maximum: float | None = None
    finite: bool = False
    shapes: bool = True


def option(default: T, row: Option) -> T:
    """A field of an option dataclass with `default`, offered on the command line as `row`."""
    return field(default=default, metadata={_KEY: row})


def argument(row: Option) -> dict[str, Option]:
    """The metadata of a field without a default."""
    return {_KEY: row}


def option_fields(options: type) -> dict[str, Field[Any]]:
    """The fields of the dataclass `options` that the command line offers, by name, in order."""
    return {found.name: found for found in fields(options) if _KEY in found.metadata}


def option_of(found: Field[Any]) -> Option:
    """How the command line offers a field of :func:`option_fields`."""
    row: Option = found.metadata[_KEY]
    return row


def option_name(found: Field[Any]) -> str:
    """The option's name, such as ``--memory-mode``."""
    return option_of(found).name or f"--{found.name.replace('_', '-')}"


@dataclass(frozen=True)
class Offer:
    """Which rows of an option dataclass a command offers: all, those `only`, or those that are not `without`.

    `--help` lists them where the function has the parameter, or `before` a row of another dataclass.
    """

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    before: str = ""

    def rows(self, kind: type) -> dict[str, Field[Any]]:
        """The rows of `kind` that are offered."""
        rows = option_fields(kind)
        assert {*self.only, *self.without} <= rows.keys(), f"{kind.__name__} lacks a row of {self}"
        return {name: rows[name] for name in self.only or rows if name not in self.without}


# Options of several commands.
INPUTS = Option("Arrays input0, input1 … in the model's order.", metavar="F.npz", shapes=False)
DATA = Option(
    "A data file of MODEL.pte; can be given several times.",
    name="--data",
    metavar="FILE.ptd",
    shapes=False,
    shown_default="those beside MODEL.pte that have its name",
)
VELA_CONFIG = Option(
    "Vela configuration file that has the system.",
    name="--vela-config",
    metavar="FILE.ini",
    shown_default="the one that the program was compiled with",
    shapes=False,
)
TRUST = Option(
    "Load a .pt2 file even if it could run code. A .py file is always executed; --trust does not apply.",
    shapes=False,
)


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options of a compilation, as given.

    `quantize` is one of QUANTIZE_CHOICES; None takes the model's own choice (the zoo's; ``none`` for a program
    that is quantised already), else ``int8``. `quantize_per` is one of QUANTIZE_PER_CHOICES: whether weights get
    a scale for each output channel or one for the whole tensor. `io`, one of IO_CHOICES, is the type of a quantised
    program's inputs and outputs. `delegate` False keeps every operator on the CPU. `fallback`, one of
    FALLBACK_CHOICES, names the kernels of what stays there: ExecuTorch's portable ones, or those of its Cortex-M
    backend where they can be; None is ``portable``. With `as_written`, rewrites that are made for speed are left out
    (:mod:`ethosu_sdk.compile.rewrite.table`), and what is done for accuracy (:mod:`ethosu_sdk.compile.refining`).
    `inputs` is an `.npz` with the example inputs ``input0``…; each file of `calibration` holds ``input0``… with
    samples stacked on a leading axis.
    `system` is a board profile, by name or as a file (:mod:`ethosu_sdk.base.board_profiles`), and `vela_config` a
    Vela configuration file: either takes the place of Vela's own configurations. `vela_flags` are added to Vela's
    command line. With `trust` a ``.pt2`` is loaded although that could run code
    (:mod:`ethosu_sdk.compile.saved_program`). `etrecord` asks for ExecuTorch's record of the lowering beside the
    program, which stays the same.
    """

    system: str | None = option(
        None,
        Option(
            "Compile for the memories and clocks of a board, or price a MODEL.pte for it: a name that `ethosu-sdk "
            "boards` lists, or a profile of your own.",
            metavar="NAME|FILE.toml",
            completion="systems",
            shapes=False,
        ),
    )
    quantize: str | None = option(
        None, Option("Post-training quantisation.", choices=QUANTIZE_CHOICES, shown_default="int8")
    )
    quantize_per: str = option(
        "channel",
        Option(
            "Quantise weights with one scale per output channel or per tensor.", choices=QUANTIZE_PER_CHOICES
        ),
    )
    calibration: tuple[Path, ...] = option(
        (),
        Option(
            "Samples for calibration; can be given several times.",
            metavar="F.npz",
            shown_default="example inputs",
            shapes=False,
        ),
    )
    inputs: Path | None = option(None, INPUTS)
    io: str = option("float", Option("Type of the model's inputs and outputs.", choices=IO_CHOICES))
    delegate: bool = option(True, Option("Keep every operator on the CPU.", name="--no-delegate"))
    fallback: str | None = option(
        None,
        Option(
            "Kernels of quantised operators that the NPU leaves to the CPU: Helium's where they can be, or portable.",
            choices=FALLBACK_CHOICES,
            shown_default=PORTABLE,
        ),
    )
    as_written: bool = option(
        False,
        Option(
            "Leave out rewrites that make the program faster, and refinements for accuracy: operators, weights and "
            "biases stay as the model has them."
        ),
    )
    vela_config: Path | None = option(
        None,
        Option(
            "Vela configuration file with the system; for a MODEL.pte, the one to price its cycles with.",
            metavar="FILE.ini",
            shown_default="Vela's own; that of the MODEL.pte",
        ),
    )
    vela_flags: tuple[str, ...] = option(
        (),
        Option(
            "Pass a further flag to Vela, such as --optimise=Size; can be given several times.",
            name="--extra-vela-flag",
            metavar="FLAG",
        ),
    )
    require_full_delegation: bool = option(
        False, Option("Fail with exit code 7 if an operator stays on the CPU.", shapes=False)
    )
    etrecord: bool = option(
        False,
        Option(
            "Also write MODEL.etrecord, which lets ExecuTorch's Inspector map events to the model's source.",
            shapes=False,
        ),
    )
    check: bool = option(
        True,
        Option(
            "Skip the run that compares the program with the model it was made from.",
            name="--no-check",
            shapes=False,
        ),
    )
    trust: bool = option(False, TRUST)

    def shape(self) -> list[Any]:
        """The values that shape the program; of a file, whether there is one, as its content is what counts."""
        return [
            getattr(self, name) is not None if Path in get_args(row.type) else getattr(self, name)
            for name, row in option_fields(ProgramOptions).items()
            if option_of(row).shapes
        ]


# What commands offer that only need a program for some target.
FOR_A_TARGET = ("target", "system_config", "memory_mode", "system", "trust")


@dataclass(frozen=True)
class TargetOptions:
    """The NPU or processor that a program is for, and one of the configurations that Vela has for its family."""

    target: str | None = option(
        None,
        Option(
            "The NPU to compile for, with its MACs per cycle, or the processor.",
            metavar="NAME",
            shown_default=f"{DEFAULT_TARGET}, or that of --system",
            completion="targets",
        ),
    )
    _: KW_ONLY
    system_config: str | None = option(
        None,
        Option(
            "Vela system configuration.",
            metavar="NAME",
            shown_default="that of --system, or the NPU family's",
            completion="system_configs",
        ),
    )
    memory_mode: str | None = option(
        None,
        Option(
            "Vela memory mode.",
            metavar="NAME",
            shown_default="that of --system, or the NPU family's",
            completion="memory_modes",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CompileOptions(ProgramOptions, TargetOptions):
    """The options of `compile` as given on the command line, not yet checked, and what other commands ask of it.

    With `layers`, the compiler leaves the values of the model's layers. `lines` of Python change the model once its
    file was executed; a record of the program does not know them.
    """

    evaluate: "EvaluateOptions | None" = None
    min_sqnr_db: float | None = None
    layers: "LayerRequest | None" = None
    lines: tuple[str, ...] = ()


def _limit(unit: str, text: str) -> Option:
    """A threshold for the pair of the user's choice."""
    return Option(f"Fail with exit code 7 {text}.", metavar=f"[PAIR=]{unit}")


@dataclass(frozen=True, kw_only=True)
class AccuracyOptions:
    """The samples to evaluate on, and the thresholds as they were typed."""

    evaluate: Path | None = option(
        None,
        Option(
            "Evaluate float model, quantised model and executed program on these samples (input0 …, "
            "label0 or output0 …).",
            metavar="F.npz",
        ),
    )
    min_top1: tuple[str, ...] = option(
        (),
        _limit("SHARE", "if the share of right answers is below this; PAIR is, for example, float-executed"),
    )
    max_top1_drop: tuple[str, ...] = option(
        (), _limit("SHARE", "if the share of right answers falls by more than this from float to executed")
    )
    min_sqnr: tuple[str, ...] = option(
        (),
        _limit(
            "DB",
            "if the signal to quantisation noise ratio is below this; without --evaluate, on the samples "
            "that every compilation compares",
        ),
    )
    min_cosine: tuple[str, ...] = option(
        (), _limit("C", "if the cosine similarity of the outputs is below this")
    )
    max_error: tuple[str, ...] = option((), _limit("E", "if the absolute error of an output is above this"))

    def thresholds(self) -> dict[str, tuple[str, ...]]:
        """What was typed for each threshold, by the option's name."""
        return {
            option_name(row): getattr(self, name)
            for name, row in option_fields(AccuracyOptions).items()
            if name != "evaluate"
        }
