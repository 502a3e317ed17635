"""A compilation's rewrites in words."""

from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Rewrite
from ethosu_sdk.records.compile_words import rewrite_words


def test_each_kind_of_rewrite_has_its_line_or_its_number() -> None:
    def made(name: str, line: int, calls: int = 1) -> Rewrite:
        source = SourceLine(file="net.py", line=line)
        return Rewrite(name=name, operator="aten::mean", calls=calls, reason="It is.", source=source)

    rows = (made("pooling as mean", 4), made("constants folded", 7, 2), made("constants folded", 8))
    assert rewrite_words(rows) == "4 operators for speed: pooling as mean (net.py:4), constants folded 3"
    assert rewrite_words(rows[:1]) == "1 operator for speed: pooling as mean (net.py:4)"
