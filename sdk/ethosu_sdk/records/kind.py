"""What a kind of record is: its members, its file, and its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform

import msgspec


class _PartMeta(msgspec.StructMeta):
    """Members stand in the order of the JSON, whether they may be absent or not: all are given by name."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _PartMeta:
        return super().__new__(cls, name, bases, namespace, kw_only=True, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Part(msgspec.Struct, metaclass=_PartMeta, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON object of a record. A member that is None is absent from the JSON.

    `together` is what its JSON Schema says of several members at once; `__post_init__` refuses what that refuses.
    """

    together: ClassVar[dict[str, Any]] = {}

    def to_json(self) -> dict[str, Any]:
        """The object as JSON has it, with its members in the order of the class."""
        content: dict[str, Any] = _with_lists(msgspec.to_builtins(self))
        return content


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_lists(part) for key, part in value.items()}
    return [_with_lists(part) for part in value] if isinstance(value, tuple) else value


def require(holds: bool, problem: str) -> None:
    """ValueError with `problem` for a part whose members do not go together; msgspec adds where it is."""
    if not holds:
        raise ValueError(problem)


def require_any(part: Part) -> None:
    """ValueError for a part without members."""
    require(any(getattr(part, name) is not None for name in part.__struct_fields__), "it has no members")


def require_distinct(*lists: tuple[str, ...]) -> None:
    """ValueError when one of `lists` has an item twice."""
    require(all(len({*rows}) == len(rows) for rows in lists), "an item occurs twice in a list")


def about(description: str) -> msgspec.Meta:
    """What a member means, in the schema."""
    return msgspec.Meta(description=description)


Content = TypeVar("Content", bound=Part)


class RecordKind(msgspec.Struct, Generic[Content], frozen=True):
    """A kind of record: the class of its content, and the rules that a JSON Schema cannot state.

    `file` is the name that it has in a folder of results, `*` standing for the model's name; empty for records that
    are only printed. `role` is what a manifest calls it.
    """

    content: type[Content]
    rules: tuple[Callable[[Content], list[str]], ...] = ()
    file: str = ""
    role: str = ""
    media_type: str = "application/json"

    @property
    def schema(self) -> str:
        """The record's member `schema`, such as ``run-result/1``."""
        return str(self.content.__struct_config__.tag)

    def name(self, model: str) -> str:
        """The file name of the record on `model`."""
        return self.file.replace("*", model)

    def convert(self, record: dict[str, Any]) -> Content:
        """The content of `record`, which its schema admits. ValueError for a number that no whole number can be."""
        # JSON Schema takes 2.0 for a whole number. Text stays text: no member is a number or a text, but for those
        # that are both.
        return msgspec.convert(record, self.content, strict=False)
