"""Quantisation that the user provides: a quantiser, or a quantised program; and an operator left in float."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile.graphs.fx import is_observer, operator_name
from ethosu_sdk.compile.program_options import ProgramOptions

QUANTIZER_NAME = "quantizer"
_QUANTIZER_HINT = (
    "give a torchao Quantizer, or a function that takes Arm's quantiser, made for the target, and returns it "
    "adjusted: docs/guide/model-files.md has examples"
)
_UNFINISHED_OPERATORS = ("aten::fake_quantize", "aten::_fake_quantize", "aten::fused_moving_avg_obs")
_CONVERT_HINT = (
    "finish the quantisation: call move_exported_model_to_eval(model), then convert_pt2e(model), and export the "
    "model that it returns"
)


@dataclass(frozen=True)
class OwnQuantizer:
    """What the name `quantizer` of the file `path` stands for: a ``Quantizer``, or a function of one."""

    value: Any
    path: Path

    @property
    def adjusts(self) -> bool:
        """Whether it is a function that gets Arm's quantiser, and with it the choices of the command line."""
        return not _is_quantizer(self.value)

    @property
    def kind(self) -> str:
        """``function`` of Arm's quantiser, or ``instance``: one that is complete."""
        return "function" if self.adjusts else "instance"

    def refuse_options(self, options: ProgramOptions, *, prequantized: bool) -> None:
        """UsageError for options that this quantiser leaves without effect."""
        if prequantized:
            raise UsageError(
                f"{self.path} is quantised already: its '{QUANTIZER_NAME}' would have no effect",
                f"remove '{QUANTIZER_NAME}', or give the float model",
            )
        if options.quantize == "none":
            raise UsageError(
                f"--quantize none contradicts {self.path}, which defines '{QUANTIZER_NAME}'",
                f"leave --quantize out, or remove '{QUANTIZER_NAME}'",
            )
        if not self.adjusts and (
            options.quantize is not None or options.quantize_per != ProgramOptions.quantize_per
        ):
            option = "--quantize" if options.quantize is not None else "--quantize-per"
            raise UsageError(
                f"{option} would have no effect: the '{QUANTIZER_NAME}' of {self.path} is a complete Quantizer",
                f"leave {option} out, or make '{QUANTIZER_NAME}' a function that takes Arm's quantiser, to which "
                f"{option} applies",
            )

    def applied(self, default: Any, graph_module: Any) -> Any:
        """The quantiser for `graph_module`, from Arm's `default`. InputError when the file's function fails."""
        made = self._adjusted(default) if self.adjusts else self.value
        self._refuse_names_without_effect(made, graph_module)
        return made

    def _adjusted(self, default: Any) -> Any:
        try:
            made = self.value(default)
        except Exception as error:
            raise InputError(
                f"'{QUANTIZER_NAME}' of {self.path} failed{_line(error, self.path)}: {plain_text.error(error)}",
                _QUANTIZER_HINT,
            ) from error
        made = default if made is None else made  # a function may adjust what it is given and return nothing
        if not _is_quantizer(made):
            raise InputError(
                f"'{QUANTIZER_NAME}' of {self.path} returned a {type(made).__name__}, not a Quantizer",
                _QUANTIZER_HINT,
            )
        return made

    def _refuse_names_without_effect(self, made: Any, graph_module: Any) -> None:
        for part in getattr(getattr(made, "quantizer", None), "_quantizers", ()):
            finder = getattr(part, "node_finder", None)
            if finder is None or any(True for _ in finder.find_nodes(graph_module)):
                continue
            names = _wanted(finder)
            raise InputError(
                f"'{QUANTIZER_NAME}' of {self.path} has a setting for {' and '.join(names) or type(finder).__name__}"
                ", which matches nothing in the model",
                suggestion(names[0], _module_names(graph_module)) if names else _QUANTIZER_HINT,
            )


def find_quantizer(namespace: Any, path: Path) -> OwnQuantizer | None:
    """The quantiser that a model's file defines; None without one. InputError for something else of that name."""
    value = getattr(namespace, QUANTIZER_NAME, None)
    if value is None:
        return None
    if isinstance(value, type) or not (_is_quantizer(value) or callable(value)):
        raise InputError(
            f"'{QUANTIZER_NAME}' of {path} is neither a Quantizer nor a function", _QUANTIZER_HINT
        )
    return OwnQuantizer(value, path)


def _wanted(finder: Any) -> list[str]:
    attributes = ("names", "module_names", "module_type_names", "targets")
    return [str(name) for attribute in attributes for name in getattr(finder, attribute, ())]


def _module_names(graph_module: Any) -> list[str]:
    names: dict[str, None] = {}
    for node in graph_module.graph.nodes:
        for name, _ in (node.meta.get("nn_module_stack") or {}).values():
            names[str(name)] = None
    return [name for name in names if name]


def _is_quantizer(value: Any) -> bool:
    from torchao.quantization.pt2e.quantizer import Quantizer

    return isinstance(value, Quantizer)


def _line(error: BaseException, path: Path) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return f" at line {lines[-1]}" if lines else ""


def is_quantized(graph: Any) -> bool:
    """Whether `graph` is one of torch.fx and holds the quantise and dequantise operators that PT2E puts in."""
    from torch.fx import Graph

    return isinstance(graph, Graph) and any(
        getattr(node.target, "namespace", "") == "quantized_decomposed" for node in graph.nodes
    )


def refuse_unfinished_module(module: Any, what: str) -> None:
    """InputError when a module still holds the observers or fake quantisation of a training."""
    for name, part in module.named_modules():
        if is_observer(part):
            raise _unfinished(what, f"'{name}' is a {type(part).__name__}")


def refuse_unfinished_program(program: Any, what: str) -> None:
    """The same for an ``ExportedProgram``."""
    for node in program.graph.nodes:
        name = operator_name(node)
        if name.startswith(_UNFINISHED_OPERATORS):
            raise _unfinished(what, f"'{node.name}' calls {name}")


def _unfinished(what: str, evidence: str) -> InputError:
    return InputError(
        f"{what} is prepared for quantisation, but not converted: {evidence}, an observer or fake quantisation",
        _CONVERT_HINT,
    )


_KEPT: list[str] = []  # operators that quantisers leave in float, to try whether a model then compiles


@contextmanager
def kept_in_float(operator: str) -> Iterator[None]:
    """While the block runs, quantisers of this process leave `operator`, such as ``aten.roll.default``, alone."""
    _KEPT.append(operator)
    try:
        yield
    finally:
        _KEPT.remove(operator)


def with_kept_float(quantizer: Any) -> Any:
    """Arm's `quantizer`, set to leave the operators of :func:`kept_in_float` in float."""
    import torch

    for name in _KEPT:
        quantizer.set_node_target(functools.reduce(getattr, name.split("."), torch.ops), None)
    return quantizer
