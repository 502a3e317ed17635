"""The MODEL argument: which model to compile, in the words of the command line.

``zoo:NAME``
    a model of the SDK's own zoo (:mod:`ethosu_sdk.aot.zoo`).
``FILE.py:NAME``
    the object NAME of a Python file: an ``nn.Module`` instance, an ``nn.Module`` class that takes no
    arguments, or a function without arguments that returns a module or ``(module, example_inputs)``.
``FILE.py``
    the same, with NAME the first of ``ModelUnderTest``, ``model``, ``Model``, ``get_model`` that exists, or
    else the only ``nn.Module`` subclass or instance that the file itself defines.
``FILE.pt2``
    a program saved with ``torch.export.save``.

Example inputs are a tensor or a tuple of tensors. They come, first found first taken, from ``--inputs``, the
function's second result, the file's ``ModelInputs`` or ``example_inputs``, the module's ``example_inputs``
(each a value or a function without arguments), or the `.pt2` itself.

Calibration samples, each a tensor or a tuple of tensors like the example inputs, come from ``--calibration``, or
from the file's ``calibration`` or ``calibration_inputs``, or the module's ``calibration_inputs`` (each a list of
samples or a function without arguments that returns one).

A file's ``feeds``, a list of texts such as ``"argmax(output0):input0"``, say how a step takes inputs from the outputs
of the step before; ``steps`` is how many of them `compile` executes in PyTorch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot import zoo
from ethosu_sdk.aot.model import python_source, saved_program
from ethosu_sdk.errors import InputError, SdkError, UsageError
from ethosu_sdk.files import file_kinds
from ethosu_sdk.targets import suggestion

_ZOO_PREFIX = "zoo:"
_FORMS = "give zoo:NAME, FILE.py[:NAME] or FILE.pt2"


@dataclass(frozen=True)
class ModelSpec:
    """A parsed MODEL. `kind` is ``zoo``, ``python`` or ``pt2``; `path` is None for the zoo; `entry` is the
    zoo model's name, or the object's name in the Python file, or None."""

    kind: str
    path: Path | None
    entry: str | None

    @property
    def name(self) -> str:
        """The name that output files get: letters, digits, ``_``, ``-`` and ``.`` only."""
        word = self.entry if self.path is None else self.path.stem
        return re.sub(r"[^A-Za-z0-9_.-]", "_", word or "model").lstrip(".") or "model"


def parse_model_spec(text: str) -> ModelSpec:
    """Read a MODEL argument.

    Raises UsageError for an unknown zoo name or form, InputError for a file that does not exist.
    """
    if text.startswith(_ZOO_PREFIX):
        name = text.removeprefix(_ZOO_PREFIX)
        if name not in zoo.names():
            known = suggestion(name, zoo.names())
            raise UsageError(f"the zoo has no model '{name}'", f"{known} (`ethosu-sdk zoo` describes them)")
        return ModelSpec("zoo", None, name)
    path_text, entry = _split_entry(text)
    path = Path(path_text)
    if path.suffix not in (".py", ".pt2"):
        raise _not_a_model(text, path)
    if path.suffix == ".pt2" and entry is not None:
        raise UsageError(f"a .pt2 file holds one program: leave out ':{entry}'", _FORMS)
    if path.is_dir():
        raise file_kinds.not_a(path, "a model that can be compiled", _FORMS)
    if not path.is_file():
        raise InputError(f"there is no model file {path}", _FORMS)
    return ModelSpec("python" if path.suffix == ".py" else "pt2", path, entry)


def check_file(spec: ModelSpec, *, trust: bool = False) -> None:
    """InputError when the file of `spec` is not what its name says, or a ``.pt2`` that could run code and has no
    `trust`, as far as this can be checked without torch and without running anything in it."""
    if spec.path is None:
        return
    if spec.kind == "python":
        python_source.check(spec.path)
        return
    kind = file_kinds.recognise(spec.path)
    if kind is None or kind.id != "pt2":
        raise file_kinds.not_a(spec.path, "a program saved by torch.export.save (.pt2)", _FORMS)
    saved_program.read(spec.path, trust=trust)


def _not_a_model(text: str, path: Path) -> SdkError:
    """The error for a MODEL whose name ends in neither .py nor .pt2."""
    if text and path.exists():
        return file_kinds.not_a(path, "a model that can be compiled", _FORMS)
    named = file_kinds.by_name(path)
    if named is None:
        return UsageError(f"'{text}' is not a model that can be compiled", _FORMS)
    return UsageError(
        f"'{text}' is not a model that can be compiled: its name says that it is {named.what}", named.way
    )


def _split_entry(text: str) -> tuple[str, str | None]:
    head, colon, tail = text.rpartition(":")
    if not colon or not head.endswith((".py", ".pt2")):
        return text, None
    if not tail.isidentifier():
        raise UsageError(f"'{tail}' in '{text}' is not a Python name", _FORMS)
    return head, tail
