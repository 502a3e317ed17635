"""Remove personal data, places and the environment's secrets from texts."""

from __future__ import annotations

import contextlib
import getpass
import os
import posixpath
import re
import socket
from collections.abc import Iterable, Mapping

from ethosu_sdk import redaction

# The variables whose values may be shown. All others may hold secrets: of those not even the name is told.
SHOWN_VARIABLES = (
    *(
        "ETHOSU_FVP_DIR",
        "ETHOSU_SDK_CACHE",
        "ETHOSU_SDK_FIRMWARE",
        "ETHOSU_SDK_NO_SKIPS",
        "ETHOSU_SDK_TEST_JOBS",
    ),
    *("CI", "LANG", "LC_ALL", "PATH", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH", "TERM", "VIRTUAL_ENV"),
)

# Folders that are the same on everybody's machine; what lies elsewhere tells of its owner.
_PUBLIC_FOLDERS = ("/usr/", "/bin/", "/sbin/", "/lib/", "/opt/venv/", "/etc/", "/dev/", "/proc/")
# Names that tell nothing, and occur in other meanings.
_PUBLIC_WORDS = {"root", "localhost", "user", "work", "tmp", "home", "ethosu-sdk"}
_SHORTEST_SECRET = 6  # a shorter value, such as "1" or "true", occurs everywhere
_PATH = re.compile(r"(?<![\w/.:-])~?/[^\s'\":;,()\[\]<>]+")
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|token|basic)\s+[\w.~+/=-]{8,}"), r"\1 <redacted>"),
    (re.compile(r"\b(?:gh[pousr]|glpat|xox[abprs]|sk|pypi|hf)[-_][\w-]{10,}"), "<redacted>"),
    (re.compile(r"\bAKIA[A-Z0-9]{12,}"), "<redacted>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+"), "<redacted>"),  # a JSON Web Token
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<redacted>"),  # a mail address
)


class Redactor:
    """Redacts texts; made once, for one environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._secrets = sorted(set(_secrets(environment)), key=len, reverse=True)
        # As words of their own: a machine called "vm" is not in every word that has these letters.
        names = "|".join(map(re.escape, sorted(_names(environment), key=len, reverse=True)))
        self._names = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])" if names else r"(?!)")

    def text(self, text: str) -> str:
        """`text` without secrets, names of people and machines, and paths outside of the system's folders."""
        for secret in self._secrets:
            text = text.replace(secret, "<redacted>")
        text = self._names.sub("<redacted>", text)
        text = redaction.addresses(text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return _PATH.sub(lambda match: _public_path(match.group()), text)

    def value(self, value: object) -> object:
        """A JSON value with all its texts redacted; keys are the SDK's own."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables that may be shown, redacted."""
        return {
            name: ":".join(self.text(part) for part in environment[name].split(":"))
            for name in SHOWN_VARIABLES
            if name in environment
        }


def _public_path(path: str) -> str:
    return path if f"{posixpath.normpath(path)}/".startswith(_PUBLIC_FOLDERS) else "<path>"


def _secrets(environment: Mapping[str, str]) -> Iterable[str]:
    """Every value of a variable that is not to be shown, and its lines and parts."""
    for name, value in environment.items():
        if name in SHOWN_VARIABLES:
            continue
        for part in {value, *re.split(r"[\s:;,=@]+", value)}:
            if (
                len(part) >= _SHORTEST_SECRET
                and not f"{part}/".startswith(_PUBLIC_FOLDERS)
                and not part.isdecimal()
            ):
                yield part


def _names(environment: Mapping[str, str]) -> Iterable[str]:
    """The user and the machine, by every name that is known."""
    found = {environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME", "HOSTNAME")}
    with contextlib.suppress(KeyError, OSError):  # a user without an entry, as in a container
        found.add(getpass.getuser())
    machine = socket.gethostname()
    found |= {machine, machine.split(".")[0]}
    found.add(os.path.basename(environment.get("HOME", "")))
    return {name for name in found if len(name) > 1 and name not in _PUBLIC_WORDS}
