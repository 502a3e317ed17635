"""From a model specification to a module with example inputs: runs the user's Python file."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import io
import json
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.aot import zoo
from ethosu_sdk.aot.graph.patching import patched
from ethosu_sdk.aot.graph.source_lines import ZOO_FOLDER, Line, SourceFinder
from ethosu_sdk.aot.model import declared_feeds, methods, python_source, saved_program
from ethosu_sdk.aot.model.construction_lines import ConstructionLines
from ethosu_sdk.aot.model.declared_feeds import NO_FEEDS, DeclaredFeeds
from ethosu_sdk.aot.model.methods import LoadedMethod
from ethosu_sdk.aot.model.spec import ModelSpec
from ethosu_sdk.aot.quantization import own_quantizer, prequantized
from ethosu_sdk.aot.quantization.own_quantizer import OwnQuantizer
from ethosu_sdk.errors import InputError
from ethosu_sdk.targets import suggestion

_DEFAULT_ENTRIES = ("ModelUnderTest", "model", "Model", "get_model")
_INPUT_NAMES = ("ModelInputs", "example_inputs")
_CALIBRATION_NAMES = ("calibration", "calibration_inputs")
_INPUTS_HINT = "define example_inputs beside the model, or give `compile` --inputs FILE.npz"
_CALIBRATION_HINT = (
    "give a list of samples, or a function that returns one; each a tensor or a tuple of tensors"
)
_MODULE_NAME = "ethosu_sdk_user_model"
_MOST_PROGRAM_BYTES = 1 << 26  # of an archive's description of a graph
# What holds the program in a .pt2: of torch 2.8 and later, and of earlier ones.
_PROGRAM_MEMBERS = ("models/model.json", "serialized_exported_program.json")


@dataclass(frozen=True)
class LoadedModel:
    """A module (``nn.Module`` in eval mode, or ``ExportedProgram``), its example inputs (a tuple of tensors,
    or None when the model brings none), calibration samples, and the quantisation it is meant for.
    `prequantized` says that it was quantised before it came here, `quantizer` is the one that its file defines.
    `lines` are those that constructed each module, by the module's name. With `methods`, a program has these instead
    of ``forward``."""

    module: Any
    example_inputs: tuple[Any, ...] | None
    calibration: tuple[tuple[Any, ...], ...] = ()
    calibration_source: str = "none"
    quantize: str = "int8"
    prequantized: bool = False
    lines: Mapping[str, Line] = field(default_factory=dict)
    quantizer: OwnQuantizer | None = None
    methods: tuple[LoadedMethod, ...] = ()
    feeds: DeclaredFeeds = NO_FEEDS


def load(spec: ModelSpec, *, trust: bool = False) -> LoadedModel:
    """Load what `spec` names; a ``.pt2`` that could run code only with `trust`. InputError when the file, the object
    or its inputs are not what they should be."""
    if spec.kind == "zoo":
        return _load_zoo(str(spec.entry))
    if spec.path is None:
        raise InputError("the model specification names no file")
    return _load_python(spec.path, spec.entry) if spec.kind == "python" else _load_pt2(spec.path, trust)


def _load_zoo(name: str) -> LoadedModel:
    constructed = ConstructionLines(zoo.source(name).parent, ZOO_FOLDER)
    with constructed.recording():
        model = zoo.load(name)
    source = "zoo" if model.calibration else "none"
    return LoadedModel(
        model.module,
        model.example_inputs,
        model.calibration,
        source,
        quantize=zoo.entry(name).quantize,
        lines=constructed.of(model.module),
    )


def _load_pt2(path: Path, trust: bool) -> LoadedModel:
    import torch

    if not zipfile.is_zipfile(path):
        raise _unloadable(path, None)
    content = io.BytesIO(saved_program.read(path, trust=trust))
    try:
        with contextlib.nullcontext() if trust else _tensors_only():
            program = torch.export.load(content)
    except Exception as error:
        raise _unloadable(path, error) from error
    return _exported(program, str(path))


def _tensors_only() -> AbstractContextManager[None]:
    """Let torch unpickle nothing but tensors and containers, whatever torch.export asks for."""
    import torch

    return patched(torch, load=functools.partial(_load_tensors, torch.load))


def _load_tensors(load: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return load(*arguments, **{**options, "weights_only": True})


def _unloadable(path: Path, error: Exception | None) -> InputError:
    """The error for a program that torch cannot load. If another version wrote it, torch's own message is only about
    members of the archive."""
    import torch

    if error is None:
        return InputError(
            f"{path} is not a program saved by torch.export: it is not a complete ZIP archive",
            "save it again with torch.export.save(torch.export.export(model, inputs), PATH)",
        )
    ours, saved = str(torch.__version__).partition("+")[0], _saved_by(path)
    if saved in (None, ours):
        return InputError(
            f"torch {ours} cannot load the program in {path}: {plain_text.error(error)}",
            "save it again with torch.export.save; if the program calls operators of another package, give a "
            "FILE.py that imports that package",
        )
    return InputError(
        f"{path} was saved by torch {saved}, but the installed torch {ours} cannot load it",
        f"export and save the model with torch {ours}, or give it as FILE.py",
    )


def _saved_by(path: Path) -> str | None:
    """The version of torch that wrote a saved program, without what names its build; None when it does not say."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(_PROGRAM_MEMBERS))
            with archive.open(name) as member:
                version = json.loads(member.read(_MOST_PROGRAM_BYTES)).get("torch_version")
    except (OSError, ValueError, zipfile.BadZipFile, StopIteration, AttributeError, NotImplementedError):
        return None
    return version.partition("+")[0] if isinstance(version, str) else None


def _exported(program: Any, what: str) -> LoadedModel:
    """The model that an ``ExportedProgram`` is."""
    prequantized.refuse_unfinished_program(program, what)
    quantized = prequantized.is_quantized(program.graph)
    quantize = "none" if quantized else "int8"
    if program.example_inputs is None:
        return LoadedModel(program, None, quantize=quantize, prequantized=quantized)
    arguments, keywords = program.example_inputs
    if keywords:
        raise InputError(
            f"{what} takes keyword inputs, which a .pte does not support", "export it with positional inputs"
        )
    inputs = as_inputs(arguments, f"the example inputs of {what}")
    return LoadedModel(program, inputs, quantize=quantize, prequantized=quantized)


def _load_python(path: Path, entry: str | None) -> LoadedModel:
    constructed = ConstructionLines(path.absolute().parent)
    with constructed.recording():
        return _load_objects(path, entry, constructed)


def _load_objects(path: Path, entry: str | None, constructed: ConstructionLines) -> LoadedModel:
    namespace = _execute(path)
    if entry == methods.NAME or (entry is None and hasattr(namespace, methods.NAME)):
        return _load_methods(namespace, path, constructed)
    name = entry or _default_entry(namespace, path)
    if not hasattr(namespace, name):
        public = [word for word in vars(namespace) if not word.startswith("_")]
        raise InputError(f"{path} defines no '{name}'", suggestion(name, public))
    module, inputs = _instantiate(getattr(namespace, name), path, name)
    prequantized.refuse_unfinished_module(module, f"{path}:{name}")
    if inputs is None:
        inputs = _find_inputs(namespace, module, path)
    quantized = prequantized.is_quantized(getattr(module, "graph", None))
    calibration = () if quantized else _find_calibration(namespace, module, path)
    return LoadedModel(
        _evaluating(module),
        inputs,
        calibration,
        "model" if calibration else "none",
        quantize="none" if quantized else "int8",
        prequantized=quantized,
        lines=constructed.of(module),
        quantizer=own_quantizer.find(namespace, path),
        feeds=declared_feeds.find(namespace, path),
    )


def _load_methods(namespace: ModuleType, path: Path, constructed: ConstructionLines) -> LoadedModel:
    """The model of a file that declares methods; what stands for its module is that of the first."""
    value = getattr(namespace, methods.NAME, None)
    try:
        given = value() if callable(value) else value
    except Exception as error:
        raise InputError(_failed(f"'{methods.NAME}' of {path} failed", error, path)) from error
    found = methods.read(given, as_inputs, str(path))
    lines: dict[str, Line] = {}
    for row in found:
        prequantized.refuse_unfinished_module(row.module, f"{path}: method '{row.name}'")
        if prequantized.is_quantized(getattr(row.module, "graph", None)):
            raise InputError(
                f"{path}: the method '{row.name}' is quantised already, which several methods cannot be",
                "give the float modules",
            )
        for name, line in constructed.of(row.owner).items():
            lines.setdefault(name, line)
    first = found[0]
    return LoadedModel(
        first.module,
        first.example_inputs,
        lines=lines,
        quantizer=own_quantizer.find(namespace, path),
        methods=found,
    )


def _evaluating(module: Any) -> Any:
    """`module` in eval mode; what torch.export made cannot be switched in the usual way."""
    try:
        return module.eval()
    except NotImplementedError:
        from torchao.quantization.pt2e import move_exported_model_to_eval

        return move_exported_model_to_eval(module)


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE_NAME, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be read as a Python file")
    module = importlib.util.module_from_spec(spec)
    # As `python FILE.py` would: the file's own folder is searched first, and pickling finds its classes.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[_MODULE_NAME] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise InputError(
            _failed(f"{path} failed when it was loaded", error, path), _missing(error)
        ) from error
    except (Exception, SystemExit) as error:
        raise InputError(_failed(f"{path} failed when it was loaded", error, path)) from error
    return module


def _failed(what: str, error: BaseException, path: Path) -> str:
    """`what` failed, why, and at which line of the user's own."""
    place = SourceFinder(path.resolve().parent).place_of(error)
    return f"{what}: {plain_text.error(error)}" + (f", at {place}" if place else "")


def _missing(error: ModuleNotFoundError) -> str:
    return python_source.missing_package(error.name or "")


def _default_entry(namespace: ModuleType, path: Path) -> str:
    import torch

    for name in _DEFAULT_ENTRIES:
        if hasattr(namespace, name):
            return name

    def is_model(value: Any) -> bool:
        if isinstance(value, torch.nn.Module):
            return True
        return (
            inspect.isclass(value) and issubclass(value, torch.nn.Module) and value.__module__ == _MODULE_NAME
        )

    found = [name for name, value in vars(namespace).items() if is_model(value)]
    if len(found) == 1:
        return found[0]
    what = f"defines {len(found)} models ({', '.join(found)})" if found else "defines no model"
    raise InputError(
        f"{path} {what}", f"name one: {path.name}:NAME, an nn.Module or a function that returns one"
    )


def _instantiate(value: Any, path: Path, name: str) -> tuple[Any, tuple[Any, ...] | None]:
    """The module behind a named object, and the example inputs when it brings them."""
    import torch

    where = f"{path}:{name}"
    inputs: tuple[Any, ...] | None = None
    if not isinstance(value, torch.nn.Module) and callable(value):
        _check_takes_nothing(value, path, name)
        try:
            value = value()
        except Exception as error:
            raise InputError(_failed(f"{where}() failed", error, path)) from error
        if isinstance(value, tuple) and len(value) == 2:
            value, given = value
            inputs = as_inputs(given, f"the example inputs that {where}() returns")
    if not isinstance(value, torch.nn.Module):
        raise InputError(
            f"{where} is a {type(value).__name__}, not a model",
            "name an nn.Module, a class of one, or a function returning a module or (module, example_inputs)",
        )
    return value, inputs


def _check_takes_nothing(value: Any, path: Path, name: str) -> None:
    """InputError for a class or function that cannot be called without arguments: those that it needs."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return  # written in C: the call will tell
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [row.name for row in parameters if row.default is row.empty and row.kind not in variadic]
    if needed:
        call = f"{name}({', '.join(f'{word}=…' for word in needed)})"
        raise InputError(
            f"{path}:{name} needs arguments: {', '.join(needed)}",
            f"add a function that supplies them, `def make(): return {call}`, and compile {path.name}:make",
        )


def _find_inputs(namespace: ModuleType, module: Any, path: Path) -> tuple[Any, ...] | None:
    found = _find_value(namespace, module, _INPUT_NAMES, path)
    return None if found is None else as_inputs(*found)


def _find_calibration(namespace: ModuleType, module: Any, path: Path) -> tuple[tuple[Any, ...], ...]:
    """The calibration samples that the file defines: each a tensor or a tuple of tensors."""
    found = _find_value(namespace, module, _CALIBRATION_NAMES, path)
    if found is None:
        return ()
    value, what = found
    try:
        samples = list(value)
    except Exception as error:
        raise InputError(
            f"{what} cannot be read as a list of samples: {plain_text.error(error)}", _CALIBRATION_HINT
        ) from error
    if not samples:
        raise InputError(f"{what} holds no samples", _CALIBRATION_HINT)
    return tuple(as_inputs(sample, f"sample {index} of {what}") for index, sample in enumerate(samples))


def _find_value(
    namespace: ModuleType, module: Any, names: tuple[str, ...], path: Path
) -> tuple[Any, str] | None:
    """The first of `names` that the file, or else the module, defines, called if it is a function, and words for
    it."""
    holders = [(namespace, name) for name in names] + [(module, names[-1])]
    for holder, name in holders:
        value = getattr(holder, name, None)
        if value is None:
            continue
        what = f"'{name}' of {path}"
        try:
            return (value() if callable(value) else value), what
        except Exception as error:
            raise InputError(f"{what} failed: {plain_text.error(error)}") from error
    return None


def as_inputs(value: Any, what: str) -> tuple[Any, ...]:
    """`value` as a tuple of tensors; InputError that starts with `what` when it is something else."""
    import torch

    values = (value,) if isinstance(value, torch.Tensor) else value
    if not isinstance(values, (tuple, list)) or not values:
        raise InputError(
            f"{what} must be a tensor or a tuple of tensors, not {type(value).__name__}", _INPUTS_HINT
        )
    for index, item in enumerate(values):
        if not isinstance(item, torch.Tensor):
            raise InputError(f"{what}: number {index} is a {type(item).__name__}, not a tensor", _INPUTS_HINT)
    return tuple(values)
