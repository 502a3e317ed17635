"""Writing and reading files that others trust: atomic, hashed, never half-written."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import hashlib
import json
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ethosu_sdk import redaction
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import opening

Record = dict[str, Any]

# What may differ between two runs of the same thing; everything else in a record must repeat bit for bit.
VOLATILE_KEYS = ("created", "wall_time_s", "check_time_s", "host", "session")
_MAX_RECORD_BYTES = 16 << 20  # in memory, JSON takes up to thirty times that
_MAX_DIGITS = 400  # of a number; Python itself stops at 4300, with a message of its own
_MAX_DEPTH = 64
_SHOWN_NAME = 40  # characters of a file name in that of its temporary file


def sha256_bytes(data: bytes | bytearray | memoryview) -> str:
    """SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content in hexadecimal. InputError when it cannot be read."""
    try:
        with opening.regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def timestamp() -> str:
    """Now, in UTC, as RFC 3339 with seconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def working_folder_is_gone() -> bool:
    """Whether the folder was deleted in which this process works: relative paths then lead nowhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def make_directory(path: Path) -> Path:
    """Create `path` with its parents; BuildError that names the reason when that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another with -o"
        if not path.is_absolute() and working_folder_is_gone():
            hint = "the working folder no longer exists: change to one that does"
        if isinstance(error, PermissionError):
            hint += '; in a container, be the folder\'s owner: docker run --user "$(id -u):$(id -g)"'
        raise BuildError(f"cannot create the folder {path}: {error.strerror}", hint) from error
    return path


def write_atomic(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then give it the final name.

    A reader sees the old content or the whole new one. Raises BuildError when the disk refuses.
    """
    if opening.is_special(path):
        raise BuildError(f"cannot write {path}: it is a device or a pipe, and no file", "name a file")
    temporary: Path | None = None
    try:
        temporary = _temporary_beside(path)
        write(temporary)
        with opening.regular(temporary) as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        hint = "free some space or choose another folder with -o" if error.errno == errno.ENOSPC else ""
        raise BuildError(f"cannot write {path}: {error.strerror}", hint) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _temporary_beside(path: Path) -> Path:
    """A new empty file beside `path`, for whom the user's mask says: tempfile's would be for the user alone."""
    while True:
        # A part of the name, which may be as long as the file system takes.
        candidate = path.with_name(f".{path.name[:_SHOWN_NAME]}.{secrets.token_hex(4)}.part")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return candidate


def make_executable(path: Path) -> None:
    """Let everybody execute `path` who may read it."""
    mode = path.stat().st_mode
    path.chmod(mode | (mode & 0o444) >> 2)


@contextlib.contextmanager
def temporary_directory(prefix: str, parent: Path) -> Iterator[Path]:
    """A folder below `parent` for the time of a `with` block. Those that killed commands left there are removed.

    Each is locked while it is in use: the system lets go of a dead process's locks. Raises OSError.
    """
    _remove_abandoned(prefix, parent)
    with contextlib.ExitStack() as stack:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            lock = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.is_dir():  # nobody took it for an abandoned one before it was locked
                break
        yield folder


def _remove_abandoned(prefix: str, parent: Path) -> None:
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` atomically."""
    write_atomic(path, lambda temporary: _fill(temporary, data))


def _fill(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def copy_file(source: Path, path: Path) -> None:
    """Copy the file `source` to `path`, atomically."""
    write_atomic(path, lambda temporary: _copy(source, temporary))


def _copy(source: Path, path: Path) -> None:
    shutil.copyfile(source, path)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write `record` atomically as indented JSON. BuildError when it is larger than what is read again."""
    content = dumps(record).encode()
    if len(content) > _MAX_RECORD_BYTES:
        raise BuildError(
            f"{path.name} would have {len(content):,} bytes, a record has {_MAX_RECORD_BYTES:,} at most"
        )
    write_bytes(path, content)


def dumps(record: Mapping[str, Any]) -> str:
    """`record` as JSON text, with a newline at its end and no secret of an address. NaN and infinity are refused."""
    return json.dumps(redaction.value(record), indent=2, allow_nan=False) + "\n"


def read_json(path: Path) -> Record:
    """The JSON object in `path`. InputError when it is missing, too large, or not an object.

    Nothing tells whether it is as it was written: commands read records through `results/reading.py`.
    """
    return parse_record(read_content(path), path)


def read_content(path: Path) -> bytes:
    """The bytes of the record at `path`. InputError when it is missing or too large."""
    content = opening.content(path, _MAX_RECORD_BYTES)
    if len(content) > _MAX_RECORD_BYTES:
        raise InputError(f"{path} is too large for a record (more than {_MAX_RECORD_BYTES:,} bytes)")
    return content


def parse_record(content: bytes, path: Path) -> Record:
    """The JSON object that `content`, of the file `path`, is. InputError when it is none."""
    try:
        value = parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} does not hold a JSON object")
    return value


def parse_json(text: str) -> Any:
    """The value of JSON `text`, by the letter of RFC 8259 and with one meaning only.

    Raises ValueError for what Python's reader lets through or fails at in words of its own: NaN and infinity, numbers
    that no float holds or that have very many digits, a key that occurs twice, brackets in brackets without an end.
    """
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep") from None
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [part for item in level for part in _parts(item)]
    if level:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= _MAX_DIGITS else math.inf
    if math.isinf(value):
        raise ValueError(f"the number {text[:_SHOWN_NAME]} is too large, or has too many digits")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice[:_SHOWN_NAME]!r} occurs twice in one object")
    return found


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def comparable(record: Mapping[str, Any]) -> Record:
    """The part of a record that must repeat bit for bit between two runs of the same thing."""
    return {key: value for key, value in record.items() if key not in VOLATILE_KEYS}


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep `directory` for this process while the block runs; others wait for it.

    BuildError when the folder takes no lock: it is read-only, or its disk is full.
    """
    make_directory(directory)
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(opening.locking(directory / ".lock"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            raise BuildError(
                f"cannot lock the folder {directory}: {error.strerror}",
                "make it writable, free some space, or choose another with -o (the cache's: ETHOSU_SDK_CACHE)",
            ) from error
        try:
            yield
        finally:
            fcntl.flock(stream, fcntl.LOCK_UN)
