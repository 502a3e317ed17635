"""What the functions are given: options by keyword, arrays and modules, as the commands take them."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import numpy as np

from ethosu_sdk.base import cache, filesystem, npz
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile import program_options
from ethosu_sdk.compile.program_options import Offer

T = TypeVar("T")
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
# Options that take arrays in place of the file that the command takes, with what its arrays are called.
_ARRAYS = {"expect": "output", "evaluate": "", "state": ""}
_SAMPLES = "calibration"
_GIVE_ARRAYS = "give tensors or arrays: one, a tuple in the model's order, or a dictionary by name"


def takes_options(function: Callable[..., T]) -> Callable[..., T]:
    """`function`, which has parameters that are option dataclasses, with a keyword for each of their rows.

    A parameter's :class:`Offer` says which rows. UsageError for a keyword or a value that is none, before anything is
    done. The signature has all of them: notebooks complete them. An error says its hint, too.
    """
    signature = inspect.signature(function, eval_str=True)
    own: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, dict[str, Field[Any]]]] = {}
    for parameter in signature.parameters.values():
        kind, *notes = (
            get_args(parameter.annotation)
            if get_origin(parameter.annotation) is Annotated
            else (parameter.annotation,)
        )
        if isinstance(kind, type) and is_dataclass(kind):
            offer = next((note for note in notes if isinstance(note, Offer)), Offer())
            groups[parameter.name] = kind, offer.rows(kind)
        else:
            own.append(parameter)
    rows = {name: row for _, found in groups.values() for name, row in found.items()}
    known = [row.name for row in own if row.kind is row.KEYWORD_ONLY] + list(rows)
    everything = {*(row.name for row in own), *rows}

    @functools.wraps(function)
    def called(*values: Any, **given: Any) -> T:
        try:
            for name in given:
                if name not in everything:
                    raise UsageError(f"{function.__name__}() has no option '{name}'", suggestion(name, known))
            taken = {name: option_value(name, rows[name], given.pop(name)) for name in rows if name in given}
            for group, (kind, found) in groups.items():
                given[group] = kind(**{name: taken[name] for name in found if name in taken})
            return function(*values, **given)
        except SdkError as error:
            if error.hint:
                error.add_note(f"hint: {error.hint}")  # Python shows it below the message
            raise

    shown = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if row.default is MISSING else row.default,
            annotation=row.type,
        )
        for name, row in rows.items()
    ]
    called.options = tuple(rows)  # type: ignore[attr-defined]
    called.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return called


def option_value(name: str, row: Field[Any], value: Any) -> Any:
    """`value` as the option `name` has it. UsageError for what it cannot be."""
    kind: Any = row.type
    if get_origin(kind) is tuple:
        if name == _SAMPLES and not _is_path(value):
            value = _samples(value)
        values = (value,) if _is_path(value) or isinstance(value, int | float) else tuple(value)
        if get_args(kind)[0] is str:  # of a threshold, the number alone
            values = tuple(str(item) if isinstance(item, int | float) else item for item in values)
        return tuple(_checked(name, row, get_args(kind)[0], item) for item in values)
    kinds = [part for part in get_args(kind) or (kind,) if part is not NoneType]
    if value is None and NoneType in get_args(kind):
        return None
    if name in _ARRAYS and not _is_path(value):
        value = _arrays_file(name, named_arrays(name, value, _ARRAYS[name]))
    return _checked(name, row, kinds[0], value)


def _checked(name: str, row: Field[Any], kind: type, value: Any) -> Any:
    option = program_options.option_of(row)
    if kind in (str, Path) and _is_path(value):
        value = kind(os.fspath(value))
    elif kind is float and isinstance(value, int | float | np.number) and not isinstance(value, bool):
        value = float(value)
    elif kind is int and isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = int(value)
    elif not (kind is bool and isinstance(value, bool)):
        raise UsageError(f"{name} is {_WORDS[kind]}, not {_shown(value)}")
    if option.choices and value not in option.choices:
        raise UsageError(f"{name} cannot be {_shown(value)}", suggestion(str(value), option.choices))
    if isinstance(value, float) and not math.isfinite(value) and (option.finite or math.isnan(value)):
        raise UsageError(f"{name} cannot be {value}", "give a finite number")
    if option.minimum is not None and value < option.minimum:
        raise UsageError(f"{name} cannot be {value}", f"give {option.minimum:g} or more")
    if option.maximum is not None and value > option.maximum:
        raise UsageError(f"{name} cannot be {value}", f"give {option.maximum:g} or less")
    return value


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def named_arrays(what: str, value: Any, prefix: str) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by the names that files have: `prefix` and a number, unless `value` has names. UsageError for anything
    but tensors and arrays."""
    if isinstance(value, Mapping):
        return {str(name): _array(f"{what}[{name!r}]", item) for name, item in value.items()}
    if not prefix:
        raise UsageError(f"{what} is a path or a dictionary of arrays, not {_shown(value)}")
    values = value if isinstance(value, tuple | list) else (value,)
    return {f"{prefix}{index}": _array(f"{what}[{index}]", item) for index, item in enumerate(values)}


def _array(what: str, value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "detach"):  # a tensor of torch
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray | np.generic):
        raise UsageError(f"{what} is {_shown(value)}, neither a tensor nor an array", _GIVE_ARRAYS)
    return np.asarray(value)


def _arrays_file(name: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Path:
    """The arrays in a file of the cache."""
    return cache.keep_given(f"{name}.npz", lambda path: npz.write_npz(path, arrays))


def inputs_file(inputs: Any) -> Path:
    """The file of the inputs of a run: a path as it is, arrays in a file of the cache."""
    return (
        Path(inputs) if _is_path(inputs) else _arrays_file("inputs", named_arrays("inputs", inputs, "input"))
    )


def _samples(value: Any) -> Any:
    """Calibration samples, each given as inputs are, stacked in a file; paths stay as they are."""
    if hasattr(value, "shape"):  # stacked already
        return _arrays_file(_SAMPLES, named_arrays(_SAMPLES, value, "input"))
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise UsageError(f"{_SAMPLES} is a path or a list of samples, not {_shown(value)}")
    rows = list(value)
    if not rows:
        raise UsageError(f"{_SAMPLES} has no samples", "leave it out to calibrate with the example inputs")
    if all(map(_is_path, rows)):
        return rows
    samples = [named_arrays(f"{_SAMPLES}[{index}]", row, "input") for index, row in enumerate(rows)]
    if any(row.keys() != samples[0].keys() for row in samples):
        raise UsageError(f"the samples of {_SAMPLES} have different numbers or names of inputs")
    try:
        stacked = {name: np.stack([row[name] for row in samples]) for name in samples[0]}
    except ValueError as error:
        raise UsageError(f"the samples of {_SAMPLES} have different shapes") from error
    return _arrays_file(_SAMPLES, stacked)


def is_model_object(model: Any) -> bool:
    """Whether `model` is a module or an exported program of torch, and no path. UsageError for anything else."""
    if _is_path(model):
        return False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module | torch.export.ExportedProgram):
        return True
    if torch is not None and isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise UsageError(f"{model.__name__} is a class, not a model", f"give an instance: {model.__name__}()")
    raise UsageError(
        f"a model cannot be {_shown(model)}",
        "give an nn.Module, an ExportedProgram, zoo:NAME, the path of a model, or what compile() returned",
    )


def saved_model(model: Any, inputs: Any) -> Path:
    """A `.pt2` in the cache for a module or an exported program. UsageError without inputs."""
    from ethosu_sdk.compile import live_module
    from ethosu_sdk.compile.graphs import tensor_arrays

    if _is_path(inputs):
        inputs = tensor_arrays.read_inputs(Path(inputs))
    elif isinstance(inputs, Mapping):
        inputs = _in_order(inputs, live_module.input_names(model), type(model).__name__)
    if inputs is None:
        if not live_module.has_inputs(model):
            raise UsageError(
                f"{type(model).__name__} needs example inputs",
                "give them behind the model as its forward takes them, such as run(model, x) or run(model, (x, y))",
            )
        tensors = None
    else:
        values = inputs if isinstance(inputs, tuple | list) else (inputs,)
        tensors = [live_module.as_tensor(row, _array(f"inputs[{i}]", row)) for i, row in enumerate(values)]
    program = live_module.exported(model, tensors)
    return cache.keep_given(f"{live_module.name_of(model)}.pt2", lambda path: live_module.save(program, path))


def _in_order(inputs: Mapping[str, Any], names: Sequence[str], model: str) -> tuple[Any, ...]:
    """The values of `inputs` in the order of the model's `names` for them."""
    for name in inputs:
        if name not in names:
            raise UsageError(f"the forward of {model} has no input '{name}'", suggestion(str(name), names))
    return tuple(inputs[name] for name in names if name in inputs)


def sweep_file(description: Any, inputs: Any) -> Path:
    """The file of a sweep: a path as it is, a dictionary as TOML in the cache. Its own files are named from the
    working folder, and its modules take `inputs`."""
    if _is_path(description):
        return Path(description)
    if not isinstance(description, Mapping):
        raise UsageError(f"a sweep is a path or a dictionary, not {_shown(description)}")
    members = dict(description)
    models = members.get("models", ())
    models = [models] if _is_path(models) or not isinstance(models, Iterable) else list(models)
    members["models"] = [
        str(saved_model(model, inputs)) if is_model_object(model) else _from_here(os.fspath(model))
        for model in models
    ]
    if "inputs" in members:
        words = members["inputs"]
        members["inputs"] = [_from_here(os.fspath(row)) for row in ([words] if _is_path(words) else words)]
    if isinstance(members.get("evaluate"), Mapping):
        members["evaluate"] = {name: str(Path(row).absolute()) for name, row in members["evaluate"].items()}
    text = "".join(f"{json.dumps(name)} = {_toml(value)}\n" for name, value in members.items())
    return cache.keep_given("sweep.toml", lambda path: filesystem.write_bytes(path, text.encode()))


def _from_here(word: str) -> str:
    """A name of the zoo or a word of the sweep as it is, a path from the working folder."""
    return word if word.startswith("zoo:") or word == "default" else str(Path(word).absolute())


def _toml(value: Any) -> str:
    """A value in TOML, in one line; its texts are written as JSON writes them."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {_toml(row)}" for name, row in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str | os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if not isinstance(value, bool | int | float):
        raise UsageError(f"the description of a sweep cannot have {_shown(value)}")
    return json.dumps(value)
