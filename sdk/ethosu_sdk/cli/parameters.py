"""From option dataclasses to the parameters that Typer reads.

A command is a function. Where a parameter's type is an option dataclass, the command line gets an option for each of
its rows, and the function gets the filled dataclass. A parameter annotated with an :class:`Option` is one by itself:
an argument if it can be passed by position, an option if it is keyword-only.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, is_dataclass
from typing import Annotated, Any, get_args, get_origin

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.compile import program_options
from ethosu_sdk.compile.program_options import Offer, Option


@dataclass(frozen=True)
class _Filled:
    """A parameter of a command's function, what fills it, and the parameters of the command line for that, by row."""

    name: str
    fill: Callable[[Mapping[str, Any]], Any]
    parameters: dict[str, inspect.Parameter]
    before: str


class Expanded:
    """`command` as a function with a parameter for each option and argument, worked out when Typer asks for them."""

    def __init__(self, command: Callable[..., None]) -> None:
        self._command = command
        self.__name__, self.__doc__ = command.__name__, command.__doc__
        self.__annotations__: dict[str, Any] = {}

    def __call__(self, **values: Any) -> None:
        self._command(**{row.name: row.fill(values) for row in self._every})

    @functools.cached_property
    def _every(self) -> list[_Filled]:
        signature = inspect.signature(self._command, eval_str=True)
        return [_filled(parameter) for parameter in signature.parameters.values()]

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(_in_order(self._every))


def _in_order(every: list[_Filled]) -> list[inspect.Parameter]:
    found = [item for row in every if not row.before for item in row.parameters.items()]
    for row in every:
        if row.before:
            place = [name for name, _ in found].index(row.before)
            found[place:place] = row.parameters.items()
    return [parameter for _, parameter in found]


def _filled(parameter: inspect.Parameter) -> _Filled:
    annotation = parameter.annotation
    kind, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    offer = next((note for note in notes if isinstance(note, Offer)), Offer())
    name = parameter.name
    if isinstance(kind, type) and is_dataclass(kind):
        rows = offer.rows(kind)
        parameters = {field: _parameter_of_row(row) for field, row in rows.items()}
        return _Filled(
            name,
            lambda values: kind(
                **{field: _value(row, values[_parameter_name(row)]) for field, row in rows.items()}
            ),
            parameters,
            offer.before,
        )
    row = next((note for note in notes if isinstance(note, Option)), None)
    if row is not None:
        name_on_line = "" if parameter.kind is not parameter.KEYWORD_ONLY else row.name or f"--{name}"
        notes = [_information(row, name_on_line, parameter.default)]
    plain = parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=Annotated[(kind, *notes)])
    return _Filled(name, lambda values: values[name], {name: plain}, offer.before)


def _value(row: Field[Any], value: Any) -> Any:
    if _is_off(row):
        return not value
    return tuple(value or ()) if get_origin(row.type) is tuple else value


def _is_off(row: Field[Any]) -> bool:
    return program_options.option_name(row).startswith("--no-")


def _parameter_name(row: Field[Any]) -> str:
    return f"no_{row.name}" if _is_off(row) else row.name


def _parameter_of_row(row: Field[Any]) -> inspect.Parameter:
    kind: Any = row.type
    default = inspect.Parameter.empty if row.default is MISSING else row.default
    if _is_off(row):
        default = not default
    if get_origin(kind) is tuple:  # which Typer knows with a fixed length alone
        kind, default = list[get_args(kind)[0]] | None, None  # type: ignore[misc]
    name = "" if row.default is MISSING else program_options.option_name(row)
    information = _information(program_options.option_of(row), name, default)
    return inspect.Parameter(
        _parameter_name(row),
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, information],
    )


def _information(row: Option, name: str, default: Any) -> Any:
    """What Typer needs to know of the option `name`, or of an argument, whose name is empty."""
    settings: dict[str, Any] = {
        "help": row.help,
        "metavar": row.metavar or "|".join(row.choices) or None,
        "min": row.minimum,
        "max": row.maximum,
        "callback": _finite if row.finite else None,
        "autocompletion": completion.completer_of(row),
        "show_default": row.shown_default or default not in (None, inspect.Parameter.empty),
    }
    names = [row.short, name] if row.short else [name]
    return typer.Option(*names, **settings) if name else typer.Argument(**settings)


def _finite(value: float) -> float:
    """`value`, unless it is infinite: no difference would exceed it."""
    if math.isinf(value):
        raise typer.BadParameter("the value must be finite")
    return value
