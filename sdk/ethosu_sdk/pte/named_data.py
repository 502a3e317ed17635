"""Named data: what a program refers to by a key, in its own segments or in data files (`.ptd`)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import data_file
from ethosu_sdk.pte.data_file import Blob, DataFile, shortened

_MAX_FOUND = 64
_SEPARATORS = (".", "_", "-")
_PLACEMENTS = "external_block_placements"  # a compile specification of Ethos-U delegates
OTHER_EXPORT = "give the .ptd files that were written together with the program"


def find_beside(path: Path) -> tuple[DataFile, ...]:
    """The data files in the folder of the program at `path` that are its own by name.

    That is the program's name, alone or with more behind one of `.`, `_` and `-`. Of several programs that a file
    could belong to, it belongs to the one with the longest name.
    """
    try:
        rows = [row for row in path.parent.iterdir() if row.is_file()]
    except OSError as error:
        raise InputError(f"cannot list {path.parent}: {error.strerror}", "give --data FILE.ptd") from error
    others = [row.stem for row in rows if row.suffix == path.suffix and _is_of(row.stem, path.stem)]
    names = sorted(
        row.name
        for row in rows
        if row.suffix == data_file.SUFFIX
        and _is_of(row.stem, path.stem)
        and not any(other != path.stem and _is_of(row.stem, other) for other in others)
    )
    if len(names) > _MAX_FOUND:
        raise InputError(
            f"{len(names)} data files beside {path.name} have its name", "choose with --data FILE.ptd"
        )
    return tuple(replace(data_file.read(path.parent / name), is_found=True) for name in names)


def _is_of(name: str, program: str) -> bool:
    """Whether a file called `name` is the `program`'s own: `net.weights` is `net`'s, `net2` is not."""
    return name == program or name.startswith(tuple(program + separator for separator in _SEPARATORS))


@dataclass
class NamedData:
    """Blobs by key: of the program's `own`, and of its data files.

    Those are the `given` ones; without any, they are looked for beside the program at the path `program`, as soon as
    a key is not in the program. `used` are those that had a key.
    """

    own: Mapping[str, Blob]
    given: Sequence[DataFile] = ()
    program: Path | None = None
    used: list[DataFile] = field(default_factory=list)

    @functools.cached_property
    def _files(self) -> Sequence[DataFile]:
        return self.given if self.given or self.program is None else find_beside(self.program)

    def find(self, key: str) -> Blob | None:
        """The blob of that key, if there is one. InputError when several files have it."""
        holders = [row for row in self._files if key in row.blobs] if key not in self.own else []
        if len(holders) > 1:
            names = " and ".join(str(row.path) for row in holders[:2])
            raise InputError(
                f"the program's data '{shortened(key)}' is in {names}",
                "name one of them with --data FILE.ptd",
            )
        if not holders:
            return self.own.get(key)
        if holders[0] not in self.used:
            self.used.append(holders[0])
        return holders[0].blobs[key]

    def require(self, key: str, what: str) -> Blob:
        """The blob of that key, which is `what`; InputError, with what to do, when there is none."""
        blob = self.find(key)
        if blob is None:
            raise missing([key], what)
        return blob

    def in_order(self) -> tuple[DataFile, ...]:
        """The data files that the program uses, as they were given. InputError for one that was given in vain."""
        extra = next((row for row in self.given if row not in self.used), None)
        if extra is not None:
            key = next(iter(extra.blobs), None)
            holds = f"it holds '{shortened(key)}'" if key is not None else "it is empty"
            raise InputError(f"the program uses nothing of {extra.path}: {holds}", OTHER_EXPORT)
        return tuple(row for row in self._files if row in self.used) if self.used else ()


def missing(keys: Sequence[str], what: str) -> InputError:
    """The error for data that is neither in the program nor in its data files."""
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return InputError(
        f"{what} '{shortened(keys[0])}'{more} is not in the program and not in its data files (.ptd)",
        "give the .ptd that was written with the program: beside NAME.pte as NAME.ptd or NAME_….ptd, or where the "
        "command has the option with --data FILE.ptd; or make the program with its data inside",
    )


def check_block(name: str, key: str, blob: Blob, compile_specs: Mapping[str, bytes]) -> None:
    """InputError for an Ethos-U block that is not the one that was compiled: its key is a SHA-256 of it.

    The digest is over the tag of the data file, too, which the program records. Without that nothing is checked.
    """
    try:
        placements = json.loads(compile_specs.get(_PLACEMENTS, b"null"))
    except (ValueError, RecursionError):
        return
    tag = placements.get(name) if isinstance(placements, dict) else None
    if not isinstance(tag, str):
        return
    digest = hashlib.sha256(tag.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(blob.data)
    if digest.hexdigest() != key:
        raise InputError(
            f"the data file's '{name}' of key {key[:16]}… was changed: its SHA-256 is {digest.hexdigest()[:16]}…",
            "the .ptd is damaged: write it again, with its program",
        )
