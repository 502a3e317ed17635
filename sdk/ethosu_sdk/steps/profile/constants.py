"""What an operation reads of its program's weights, biases and scales, as a digest: by it two programs are told apart
where their streams are the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from ethosu_sdk.npu.operation import DmaOp, Operation, Stream

_REGION = 0  # of a command stream: the program's constants
_MOST_TIMES = 8  # that a damaged program may have all of its constants read, each time in other pieces


@dataclass
class Constants:
    """The constants of a delegate."""

    content: memoryview
    _digests: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _bytes_read: int = 0

    def digest(self, operation: Operation) -> str | None:
        """SHA-256 over the digests of what `operation` reads of them; None when it reads none."""
        parts = [self._part(row) for row in _streams(operation) if row.region == _REGION]
        if not parts or self._bytes_read > _MOST_TIMES * len(self.content):
            return None
        return sha256(b"".join(parts)).hexdigest()

    def _part(self, row: Stream) -> bytes:
        key = row.address, row.length
        if key not in self._digests and self._bytes_read <= _MOST_TIMES * len(self.content):
            part = self.content[row.address : row.address + row.length]
            self._bytes_read += len(part)
            self._digests[key] = sha256(part).digest()
        return self._digests.get(key, b"")


def _streams(operation: Operation) -> list[Stream]:
    if isinstance(operation, DmaOp):
        is_one = operation.counts == (1, 1) and operation.index is None
        if operation.source_region is None or not is_one:
            return []
        return [Stream(operation.source_region, operation.source, operation.length)]
    return [
        *(operation.weights.streams if operation.weights is not None else ()),
        *(operation.scales.streams if operation.scales is not None else ()),
    ]
