"""Bytes that arrive in pieces, base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from ethosu_sdk.evidence.uart import ProtocolError


def joined(chunks: Sequence[dict[str, Any]], where: str) -> bytes:
    """The bytes that the records `chunks` hold in turn; ProtocolError for a gap. `where` names what they are."""
    data = bytearray()
    for chunk in chunks:
        if chunk["offset"] != len(data):
            raise ProtocolError(f"a piece of {where} is missing before byte {chunk['offset']}")
        try:
            data += base64.b64decode(chunk["base64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(f"a piece of {where} is not base64") from error
    return bytes(data)
