"""``feeds`` of a model's file: how each step takes inputs from the outputs of the step before."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from ethosu_sdk import feeds
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.feeds import Feed

NAME, STEPS_NAME = "feeds", "steps"
DEFAULT_STEPS, MOST_STEPS = 16, 4096
_HINT = 'for example feeds = ["argmax(output0):input0", "step:input1"], and steps = 32'


@dataclass(frozen=True)
class DeclaredFeeds:
    """The `feeds` that a file declares, and how many `steps` of them `compile` executes in PyTorch."""

    feeds: tuple[Feed, ...] = ()
    steps: int = DEFAULT_STEPS


NO_FEEDS = DeclaredFeeds()


def find(namespace: ModuleType, path: object) -> DeclaredFeeds:
    """What the file at `path` declares. InputError for something else than feeds."""
    given = getattr(namespace, NAME, None)
    if given is None or callable(given):
        return NO_FEEDS
    if not isinstance(given, (list, tuple)) or not all(isinstance(row, str) for row in given):
        raise InputError(f"'{NAME}' of {path} is not a list of texts", _HINT)
    try:
        found = feeds.parse(given)
    except SdkError as error:
        raise InputError(f"'{NAME}' of {path}: {error.message}", error.hint) from error
    steps = getattr(namespace, STEPS_NAME, DEFAULT_STEPS)
    if type(steps) is not int or not 1 <= steps <= MOST_STEPS:
        raise InputError(f"'{STEPS_NAME}' of {path} is not a number from 1 to {MOST_STEPS}", _HINT)
    return DeclaredFeeds(found, steps)
