"""The methods of a model that a program has instead of ``forward``, as its file declares them.

``methods`` of the file is a dictionary, or a function that returns one::

    methods = {"prefill": (model.prefill, (tokens,)), "decode": (model.decode, (token, position))}

Each value is a module, or a method of one, with its example inputs, and calibration samples where there are some.
Methods of one module share its weights and its buffers.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.errors import InputError

NAME = "methods"
_METHOD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MOST = 16
_HINT = (
    "give methods = {'NAME': (model.NAME, (example inputs,)), …}; a list of calibration samples may follow the "
    "example inputs"
)
_SHARED_HINT = "give methods of the one module that holds it"


@dataclass(frozen=True)
class LoadedMethod:
    """A method of a program: a module whose ``forward`` it is, a copy of its `owner`, with example inputs and
    calibration samples. `root` is the place in the file's dictionary of the first method of the same owner."""

    name: str
    owner: Any
    module: Any
    example_inputs: tuple[Any, ...]
    calibration: tuple[tuple[Any, ...], ...]
    root: int


def read(
    value: Any, as_inputs: Callable[[Any, str], tuple[Any, ...]], where: str
) -> tuple[LoadedMethod, ...]:
    """The methods that `value` declares. InputError for what is no such dictionary."""
    what = f"'{NAME}' of {where}"
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{what} must be a dictionary with at least one method", _HINT)
    if len(value) > _MOST:
        raise InputError(f"{what} has {len(value)} methods; a program may have {_MOST}")
    owners: list[Any] = []
    found = []
    for name, row in value.items():
        if not isinstance(name, str) or not _METHOD_NAME.fullmatch(name):
            raise InputError(
                f"{what}: {name!r} is no name of a method",
                "use letters, digits and _, 64 at most, no digit first",
            )
        if not isinstance(row, (tuple, list)) or len(row) not in (2, 3):
            raise InputError(f"{what}: '{name}' must be (method, example inputs)", _HINT)
        owner, module = _module(row[0], f"{what}: '{name}'")
        root = next((index for index, known in enumerate(owners) if known is owner), len(owners))
        owners.append(owner)
        inputs = as_inputs(row[1], f"the example inputs of '{name}' in {what}")
        samples = _samples(row[2], as_inputs, f"'{name}' in {what}") if len(row) > 2 else ()
        found.append(LoadedMethod(name, owner, module, inputs, samples, root))
    _check_owners(owners, list(value), what)
    return tuple(found)


def _module(value: Any, what: str) -> tuple[Any, Any]:
    """The module that a method belongs to, and a copy of it whose ``forward`` is the method."""
    import torch

    owner = value if isinstance(value, torch.nn.Module) else getattr(value, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        raise InputError(
            f"{what} is a {type(value).__name__}, neither a module nor a method of one",
            "a function has no weights: write it as a method of an nn.Module",
        )
    try:
        module = copy.deepcopy(owner)
    except Exception as error:
        raise InputError(f"{what}: the module cannot be copied: {plain_text.error(error)}") from error
    if value is not owner:
        kind = type(module)
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "forward": value.__func__}
        module.__class__ = type(kind.__name__, (kind,), names)
    return owner, module.eval()


def _samples(
    value: Any, as_inputs: Callable[[Any, str], tuple[Any, ...]], what: str
) -> tuple[tuple[Any, ...], ...]:
    try:
        rows = list(value)
    except Exception as error:
        raise InputError(
            f"the calibration samples of {what} are no list: {plain_text.error(error)}", _HINT
        ) from error
    if not rows:
        raise InputError(f"the calibration samples of {what} are an empty list", _HINT)
    return tuple(as_inputs(row, f"calibration sample {index} of {what}") for index, row in enumerate(rows))


def _check_owners(owners: list[Any], names: list[str], what: str) -> None:
    """InputError for a buffer that two modules hold: the program would have two of it."""
    holders: dict[int, tuple[int, str]] = {}
    for number, owner in enumerate(owners):
        for path, buffer in owner.named_buffers():
            first, known = holders.setdefault(id(buffer), (number, path))
            if owners[first] is not owner:
                raise InputError(
                    f"{what}: '{names[first]}' and '{names[number]}' are of two modules that hold one buffer, "
                    f"'{known}' and '{path}'",
                    _SHARED_HINT,
                )


def check_names(written: Mapping[str, list[str]], roots: Mapping[str, int]) -> None:
    """InputError for buffers of one name in different modules: ExecuTorch would give them one memory. `written` has
    the buffers that each method changes."""
    owners: dict[str, str] = {}
    for method, names in written.items():
        for name in names:
            first = owners.setdefault(name, method)
            if roots[first] != roots[method]:
                raise InputError(
                    f"the methods '{first}' and '{method}' are of two modules, and each changes a buffer '{name}': "
                    "ExecuTorch gives buffers of one name one memory",
                    "rename one of the buffers; if they are one, give methods of the one module that holds it",
                )
