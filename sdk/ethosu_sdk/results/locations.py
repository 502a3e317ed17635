"""Where results go: `build/<model>-<target>/` below the working folder, unless -o says otherwise."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import file_kinds, hashing, opening, writing
from ethosu_sdk.records import kinds, rules
from ethosu_sdk.targets import AnyTarget, Target

BUILD_FOLDER = "build"
_MAKE_ONE = "give a .pte file; `ethosu-sdk compile` makes one from a model"
NO_NPU = "cpu"  # the folder's suffix for a program that delegates nothing


def for_model(name: str, target: AnyTarget | None, chosen: Path | None) -> Path:
    """The output folder for the model `name`, created."""
    suffix = target.name if target is not None else NO_NPU
    return writing.make_directory(chosen or Path(BUILD_FOLDER) / f"{name}-{suffix}")


def for_pte(pte: Path, target: Target | None, chosen: Path | None) -> Path:
    """The output folder for a ready `.pte`: the folder that `compile` made for it, else a new one."""
    if chosen is None and compile_record(pte).is_file():
        return pte.parent
    return for_model(pte.stem, target, chosen)


def compile_record(pte: Path) -> Path:
    """The record that `compile` writes beside its `.pte`."""
    return pte.with_name(kinds.COMPILE.name(pte.stem))


def example_io(pte: Path, method: str | None = None) -> Path:
    """The example inputs and outputs of a method that `compile` writes beside its `.pte`; None: of the first."""
    own = pte.with_name(f"{pte.stem}.{method}.io.npz")
    return own if method is not None and own.is_file() else pte.with_name(f"{pte.stem}.io.npz")


def require_pte(path: Path) -> Path:
    """`path`, if it is a file whose name ends in .pte. InputError otherwise."""
    if not path.exists():
        raise InputError(f"there is no file {path}", _MAKE_ONE)
    if path.suffix != ".pte":
        kind = file_kinds.recognise(path)
        if kind is not None and kind.id == "pte":
            raise InputError(
                f"{path} does not end in .pte", "it is a compiled program: rename it so that it ends in .pte"
            )
        raise file_kinds.not_a(path, "a .pte file", _MAKE_ONE)
    if rules.leaves(path.name):
        raise InputError(
            f"the name of {path} cannot be recorded: on other systems it would be a path",
            "rename it without a backslash and without a colon after the first letter",
        )
    return path


def content(path: Path, program: pte.Pte) -> bytes:
    """The bytes of `program`, read again from `path`. InputError if the file has changed."""
    data = opening.content(path, program.size)
    if hashing.sha256_bytes(data) != program.sha256:
        raise InputError(f"{path} changed while it was being read")
    return data
