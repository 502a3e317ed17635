"""Text that is shown: what is hidden of an address, that hostile text does not take long, and numbers in words."""

import time
from pathlib import Path

import pytest

from ethosu_sdk import plain_text, redaction
from ethosu_sdk.plain_text import counted
from tests.tables import each

HIDDEN = redaction.HIDDEN


@each(
    ("text", "shown"),
    [
        ("https://user:pw@host/a", f"https://{HIDDEN}@host/a"),
        ("https://token@host:80/a", f"https://{HIDDEN}@host:80/a"),
        ("https://u:p@w@host/a@b", f"https://{HIDDEN}@host/a@b"),
        (str(Path("https://user:pw@host/a")), f"https:/{HIDDEN}@host/a"),
        ("s3://h/a?X-Amz-Signature=f00&b=1 rest", f"s3://h/a?{HIDDEN} rest"),
        ("'https://h/a?sv=1&sig=x%3D', next", f"'https://h/a?{HIDDEN}', next"),
        ("https://h/a#access_token=x&y", f"https://h/a#{HIDDEN}"),
        ("a.tgz?token=x y", f"a.tgz?token={HIDDEN} y"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ('{"authorization": "Basic eHg="}', f'{{"authorization": "Basic {HIDDEN}"}}'),
        ("git+ssh://git:pw@h/r https://h/?a=1", f"git+ssh://{HIDDEN}@h/r https://h/?{HIDDEN}"),
        *(
            (same, same)
            for same in (
                "https://h/a/b.tgz#section",
                "pkg:deb/debian/gcc@12?arch=amd64",
                "int f(const int &token_count = x)",
                "/work/model.pte: a=1? no",
                "user@host",
                "input0.scale=2",
            )
        ),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert redaction.addresses(text) == shown
    assert plain_text.line(text) == plain_text.lines(text) == shown
    assert redaction.value({"a": [text, 1, None]}) == {"a": [shown, 1, None]}
    assert redaction.addresses(shown) == shown  # a record may be written twice


@each("piece", ["a:/", "a://@", "?token", "&key=", "http://a@", "authorization:", "a.", "#=", "?"])
def test_hostile_text_takes_no_long_time(piece: str) -> None:
    start = time.process_time()
    redaction.addresses(piece * (300_000 // len(piece)))
    redaction.addresses("http:/" + piece * (300_000 // len(piece)) + "=")
    assert time.process_time() - start < 2


# --- Numbers of things in words.


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 samples"), (1, "1 sample"), (2, "2 samples"), (12_345, "12,345 samples")]
)
def test_one_has_no_plural(count: int, words: str) -> None:
    assert counted(count, "sample") == words
