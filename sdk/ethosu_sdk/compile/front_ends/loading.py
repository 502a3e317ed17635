"""From a model specification to a module with example inputs: runs the user's file, reads methods, feeds, samples."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import inspect
import io
import json
import os
import re
import sys
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile import model_errors, quantizers, saved_program, zoo
from ethosu_sdk.compile.front_ends import model_spec
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec
from ethosu_sdk.compile.graphs.source_lines import ZOO_FOLDER, Line, SourceFinder
from ethosu_sdk.compile.quantizers import OwnQuantizer
from ethosu_sdk.compile.tool_hooks import patched
from ethosu_sdk.program import feeds
from ethosu_sdk.program.feeds import Feed

if TYPE_CHECKING:
    from ethosu_sdk.compile.front_ends.onnx_model import OnnxModel

_DEFAULT_ENTRIES = ("ModelUnderTest", "model", "Model", "get_model")
_CALIBRATION_NAMES = ("calibration", "calibration_inputs")
_INPUTS_HINT = (
    "give a tensor, or a tuple of tensors in the order of forward: example_inputs = (torch.randn(1, 3, 32, 32),); "
    "torch.from_numpy makes one of an array"
)
_CALIBRATION_HINT = (
    "give a list of samples, or a function that returns one; each a tensor or a tuple of tensors"
)
_MODULE_NAME = "ethosu_sdk_user_model"
_MOST_PROGRAM_BYTES = 1 << 26  # of an archive's description of a graph
# What holds the program in a .pt2: of torch 2.8 and later, and of earlier ones.
_PROGRAM_MEMBERS = ("models/model.json", "serialized_exported_program.json")

_METHODS_NAME = "methods"
_METHOD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MOST_METHODS = 16
_METHODS_HINT = (
    "give methods = {'NAME': (model.NAME, (example inputs,)), …}; a list of calibration samples may follow the "
    "example inputs"
)

_FEEDS_NAME, _STEPS_NAME = "feeds", "steps"
_DEFAULT_STEPS, _MOST_STEPS = 16, 4096
_FEEDS_HINT = 'for example feeds = ["argmax(output0):input0", "step:input1"], and steps = 32'


@dataclass(frozen=True)
class DeclaredFeeds:
    """The `feeds` that a file declares, and how many `steps` of them `compile` executes in PyTorch."""

    feeds: tuple[Feed, ...] = ()
    steps: int = _DEFAULT_STEPS


NO_FEEDS = DeclaredFeeds()


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


@dataclass(frozen=True)
class LoadedModel:
    """A module (``nn.Module`` in eval mode, or ``ExportedProgram``), its example inputs (a tuple of tensors, or None
    when the model brings none), calibration samples, and the quantisation it is meant for. `prequantized` says that
    it was quantised before it came here, `quantizer` is the one that its file defines. `lines` are those that
    constructed each module, by the module's name. With `methods`, a program has these instead of ``forward``.
    `origin` is what the module was converted from."""

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
    origin: OnnxModel | None = None


def load_model(spec: ModelSpec, *, trust: bool = False, inputs: Path | None = None) -> LoadedModel:
    """Load what `spec` names; a ``.pt2`` that could run code only with `trust`. `inputs` give open sizes. InputError
    when the file, the object or its inputs are not what they should be."""
    if spec.kind == "zoo":
        return _load_zoo(str(spec.entry))
    if spec.path is None:
        raise InputError("the model specification names no file")
    if spec.kind == "onnx":
        return _load_onnx(spec.path, inputs)
    if spec.kind != "python":
        return _load_pt2(spec.path, trust)
    constructed = _ConstructionLines(spec.path.absolute().parent)
    with constructed.recording():
        return _load_python(spec.path, spec.entry, constructed)


def _load_zoo(name: str) -> LoadedModel:
    constructed = _ConstructionLines(zoo.source(name).parent, ZOO_FOLDER)
    with constructed.recording():
        model = zoo.load(name)
    return LoadedModel(
        model.module,
        model.example_inputs,
        model.calibration,
        "zoo" if model.calibration else "none",
        quantize=zoo.entry(name).quantize,
        lines=constructed.of(model.module),
    )


def _load_pt2(path: Path, trust: bool) -> LoadedModel:
    import torch

    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not a program saved by torch.export: it is not a complete ZIP archive",
            "save it again with torch.export.save(torch.export.export(model, inputs), PATH)",
        )
    content = io.BytesIO(saved_program.read_saved_program(path, trust=trust))
    load = torch.load

    def load_tensors(*arguments: Any, **options: Any) -> Any:
        return load(*arguments, **{**options, "weights_only": True})  # whatever torch.export asks for

    try:
        with contextlib.nullcontext() if trust else patched(torch, load=load_tensors):
            program = torch.export.load(content)
    except Exception as error:
        raise _unloadable(path, error) from error
    return _exported(program, str(path))


def _load_onnx(path: Path, inputs: Path | None) -> LoadedModel:
    from ethosu_sdk.compile.front_ends import onnx_model

    model = onnx_model.load_onnx(path, inputs)
    return LoadedModel(model.module, model.example_inputs, origin=model)


def _unloadable(path: Path, error: Exception) -> InputError:
    """The error for a program that torch cannot load. Of another version's, torch names archive members only."""
    import torch

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
    quantizers.refuse_unfinished_program(program, what)
    quantized = quantizers.is_quantized(program.graph)
    quantize = "none" if quantized else "int8"
    if program.example_inputs is None:
        return LoadedModel(program, None, quantize=quantize, prequantized=quantized)
    arguments, keywords = program.example_inputs
    if keywords:
        raise InputError(
            f"{what} takes keyword inputs, which a .pte does not support", "export it with positional inputs"
        )
    inputs = _as_inputs(arguments, f"the example inputs of {what}")
    return LoadedModel(program, inputs, quantize=quantize, prequantized=quantized)


def _load_python(path: Path, entry: str | None, constructed: _ConstructionLines) -> LoadedModel:
    namespace = _execute(path)
    if entry == _METHODS_NAME or (entry is None and hasattr(namespace, _METHODS_NAME)):
        return _load_methods(namespace, path, constructed)
    name = entry or _default_entry(namespace, path)
    if not hasattr(namespace, name):
        public = [word for word in vars(namespace) if not word.startswith("_")]
        raise InputError(f"{path} defines no '{name}'", suggestion(name, public))
    module, inputs = _instantiate(getattr(namespace, name), path, name)
    quantizers.refuse_unfinished_module(module, f"{path}:{name}")
    if inputs is None:
        found = _find_value(namespace, module, ("ModelInputs", "example_inputs"), path)
        inputs = None if found is None else _as_inputs(*found)
    quantized = quantizers.is_quantized(getattr(module, "graph", None))
    calibration = () if quantized else _find_calibration(namespace, module, path)
    return LoadedModel(
        _evaluating(module),
        inputs,
        calibration,
        "model" if calibration else "none",
        quantize="none" if quantized else "int8",
        prequantized=quantized,
        lines=constructed.of(module),
        quantizer=quantizers.find_quantizer(namespace, path),
        feeds=_declared_feeds(namespace, path),
    )


def _load_methods(namespace: ModuleType, path: Path, constructed: _ConstructionLines) -> LoadedModel:
    """The model of a file that declares methods; what stands for its module is that of the first."""
    value = getattr(namespace, _METHODS_NAME, None)
    try:
        given = value() if callable(value) else value
    except Exception as error:
        raise _failed(f"'{_METHODS_NAME}' of {path} failed", error, path) from error
    found = _declared_methods(given, path)
    lines: dict[str, Line] = {}
    for row in found:
        quantizers.refuse_unfinished_module(row.module, f"{path}: method '{row.name}'")
        if quantizers.is_quantized(getattr(row.module, "graph", None)):
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
        quantizer=quantizers.find_quantizer(namespace, path),
        methods=found,
    )


def _declared_methods(value: Any, path: Path) -> tuple[LoadedMethod, ...]:
    """The methods that a program has instead of ``forward``, as `value`, ``methods`` of the file, declares them::

        methods = {"prefill": (model.prefill, (tokens,)), "decode": (model.decode, (token, position))}

    Each value is a module, or a method of one, with its example inputs, and calibration samples where there are some.
    Methods of one module share its weights and its buffers. InputError for what is no such dictionary.
    """
    what = f"'{_METHODS_NAME}' of {path}"
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{what} must be a dictionary with at least one method", _METHODS_HINT)
    if len(value) > _MOST_METHODS:
        raise InputError(f"{what} has {len(value)} methods; a program may have {_MOST_METHODS}")
    owners: list[Any] = []
    found = []
    for name, row in value.items():
        if not isinstance(name, str) or not _METHOD_NAME.fullmatch(name):
            raise InputError(
                f"{what}: {name!r} is no name of a method",
                "use letters, digits and _, 64 at most, no digit first",
            )
        if not isinstance(row, (tuple, list)) or len(row) not in (2, 3):
            raise InputError(f"{what}: '{name}' must be (method, example inputs)", _METHODS_HINT)
        owner, module = _method_module(row[0], f"{what}: '{name}'")
        root = next((index for index, other in enumerate(owners) if other is owner), len(owners))
        owners.append(owner)
        inputs = _as_inputs(row[1], f"the example inputs of '{name}' in {what}")
        samples = _method_samples(row[2], f"'{name}' in {what}") if len(row) > 2 else ()
        found.append(LoadedMethod(name, owner, module, inputs, samples, root))
    _check_owners(owners, list(value), what)
    return tuple(found)


def _method_module(value: Any, what: str) -> tuple[Any, Any]:
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


def _method_samples(value: Any, what: str) -> tuple[tuple[Any, ...], ...]:
    try:
        rows = list(value)
    except Exception as error:
        raise InputError(
            f"the calibration samples of {what} are no list: {plain_text.error(error)}", _METHODS_HINT
        ) from error
    if not rows:
        raise InputError(f"the calibration samples of {what} are an empty list", _METHODS_HINT)
    return tuple(_as_inputs(row, f"calibration sample {index} of {what}") for index, row in enumerate(rows))


def _check_owners(owners: list[Any], names: list[str], what: str) -> None:
    holders: dict[int, tuple[int, str]] = {}
    for number, owner in enumerate(owners):
        for path, buffer in owner.named_buffers():
            first, first_path = holders.setdefault(id(buffer), (number, path))
            if owners[first] is not owner:
                raise InputError(
                    f"{what}: '{names[first]}' and '{names[number]}' are of two modules that hold one buffer, "
                    f"'{first_path}' and '{path}'",
                    "give methods of the one module that holds it",
                )


def _declared_feeds(namespace: ModuleType, path: Path) -> DeclaredFeeds:
    """The feeds that the file at `path` declares in `feeds`. InputError for something else than feeds."""
    given = getattr(namespace, _FEEDS_NAME, None)
    if given is None or callable(given):
        return NO_FEEDS
    if not isinstance(given, (list, tuple)) or not all(isinstance(row, str) for row in given):
        raise InputError(f"'{_FEEDS_NAME}' of {path} is not a list of texts", _FEEDS_HINT)
    try:
        found = feeds.parse_feeds(given)
    except SdkError as error:
        raise InputError(f"'{_FEEDS_NAME}' of {path}: {error.message}", error.hint) from error
    steps = getattr(namespace, _STEPS_NAME, _DEFAULT_STEPS)
    if type(steps) is not int or not 1 <= steps <= _MOST_STEPS:
        raise InputError(f"'{_STEPS_NAME}' of {path} is not a number from 1 to {_MOST_STEPS}", _FEEDS_HINT)
    return DeclaredFeeds(found, steps)


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
        hint = model_spec.missing_package(error.name or "")
        raise InputError(_failed(f"{path} failed when it was loaded", error, path).message, hint) from error
    except (Exception, SystemExit) as error:
        raise _failed(f"{path} failed when it was loaded", error, path) from error
    return module


def _failed(what: str, error: BaseException, path: Path) -> InputError:
    folder = path.resolve().parent
    place = SourceFinder(folder).place_of(error)
    words, hint = model_errors.explained(plain_text.error(error), error, folder)
    return InputError(f"{what}: {words}" + (f", at {place}" if place else ""), hint)


def _default_entry(namespace: ModuleType, path: Path) -> str:
    import torch

    for name in _DEFAULT_ENTRIES:
        if hasattr(namespace, name):
            return name

    def is_model(value: Any) -> bool:
        if not inspect.isclass(value):
            return isinstance(value, torch.nn.Module)
        return issubclass(value, torch.nn.Module) and value.__module__ == _MODULE_NAME

    found = [name for name, value in vars(namespace).items() if is_model(value)]
    if len(found) == 1:
        return found[0]
    what = f"defines {len(found)} models ({', '.join(found)})" if found else "defines no model"
    hint = (
        f"name one: {path}:{found[0]}"
        if found
        else f"add an nn.Module, `model = …`, or a function: {path}:NAME"
    )
    raise InputError(f"{path} {what}", hint)


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
            raise _failed(f"{where}() failed", error, path) from error
        if isinstance(value, tuple) and len(value) == 2:
            value, given = value
            inputs = _as_inputs(given, f"the example inputs that {where}() returns")
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


def _find_calibration(namespace: ModuleType, module: Any, path: Path) -> tuple[tuple[Any, ...], ...]:
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
    return tuple(_as_inputs(sample, f"sample {index} of {what}") for index, sample in enumerate(samples))


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
            raise _failed(f"{what} failed", error, path) from error
    return None


def _as_inputs(value: Any, what: str) -> tuple[Any, ...]:
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


def check_method_buffers(written: Mapping[str, list[str]], roots: Mapping[str, int]) -> None:
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


def with_added_lines(model: LoadedModel, lines: Sequence[str]) -> LoadedModel:
    """`model` after `lines` of Python, with which `advise --try` changes it. They find ``model``, ``example_inputs``,
    ``torch`` and ``nn`` as its file would. InputError when they fail, as with a module of another kind."""
    if not lines:
        return model
    import torch

    names: dict[str, Any] = {
        "torch": torch,
        "nn": torch.nn,
        "model": model.module,
        "example_inputs": model.example_inputs,
    }
    try:
        exec(compile("\n".join(lines), "<added lines>", "exec"), names)
    except Exception as error:
        raise InputError(f"the change cannot be made to this model: {plain_text.error(error)}") from error
    quantizer, inputs = model.quantizer, names["example_inputs"]
    if quantizers.QUANTIZER_NAME in names:
        if quantizer is not None:
            raise InputError(
                f"the change defines '{quantizers.QUANTIZER_NAME}', which the model's file has already"
            )
        quantizer = OwnQuantizer(names[quantizers.QUANTIZER_NAME], Path("the added lines"))
    return dataclasses.replace(
        model,
        module=names["model"],
        example_inputs=None if inputs is None else _as_inputs(inputs, "example_inputs"),
        quantizer=quantizer,
    )


class _ConstructionLines:
    """The innermost line below `root` that constructed each module, for modules made while :meth:`recording`. Files
    are named by `folder`, which is empty for those of the user, and their path below `root`. The forward of an
    ``nn.Sequential``, or of any module of torch's own that is the model itself, has no line of the user's: what names
    its layers is the line that made them."""

    def __init__(self, root: Path, folder: str = "") -> None:
        self._root, self._folder = root, folder
        self._prefix = f"{root}{os.sep}"
        self._lines: weakref.WeakKeyDictionary[Any, Line] = weakref.WeakKeyDictionary()

    def recording(self) -> AbstractContextManager[None]:
        import torch

        original = torch.nn.Module.__init__

        @functools.wraps(original)
        def noted(module: Any, *args: Any, **kwargs: Any) -> None:
            self._note(module, sys._getframe(1))
            original(module, *args, **kwargs)

        return patched(torch.nn.Module, __init__=noted)

    def of(self, model: Any) -> dict[str, Line]:
        """(file relative to the root, line, function) by the name of each module of `model`."""
        found = {}
        for name, module in model.named_modules():
            with contextlib.suppress(KeyError, TypeError):
                found[name] = self._lines[module]
        return found

    def _note(self, module: Any, frame: FrameType | None) -> None:
        while frame is not None:
            name = frame.f_code.co_filename
            inside = name.removeprefix(self._prefix)
            if inside != name and "site-packages" not in inside:
                code, function = frame.f_code, None
                if code.co_name != "<module>":
                    function = code.co_qualname.rpartition("<locals>.")[2]  # with its classes
                with contextlib.suppress(TypeError):  # a class that cannot be hashed
                    file = f"{self._folder}{Path(inside).as_posix()}"
                    self._lines[module] = file, frame.f_lineno, function
                return
            frame = frame.f_back
