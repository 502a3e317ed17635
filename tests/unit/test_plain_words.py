"""Numbers of things in words."""

import pytest

from ethosu_sdk.plain_text import counted


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 samples"), (1, "1 sample"), (2, "2 samples"), (12_345, "12,345 samples")]
)
def test_one_has_no_plural(count: int, words: str) -> None:
    assert counted(count, "sample") == words
