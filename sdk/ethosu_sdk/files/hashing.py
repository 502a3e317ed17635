"""SHA-256 of bytes and of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening


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
